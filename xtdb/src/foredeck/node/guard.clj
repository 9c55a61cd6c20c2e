(ns foredeck.node.guard
  "Checks on a request before it is served: the bearer token, and the size of the body."
  (:require [clojure.java.io :as io]
            [clojure.string :as str])
  (:import (com.sun.net.httpserver HttpExchange)
           (java.io ByteArrayOutputStream InputStream)
           (java.nio.charset StandardCharsets)
           (java.nio.file Files LinkOption Path)
           (java.nio.file.attribute PosixFilePermission)
           (java.security MessageDigest)))

(set! *warn-on-reflection* true)

(def ^:private open-to-others
  #{PosixFilePermission/GROUP_READ PosixFilePermission/GROUP_WRITE
    PosixFilePermission/OTHERS_READ PosixFilePermission/OTHERS_WRITE})

(defn- readable-by-others? [^Path path]
  (and (contains? (.supportedFileAttributeViews (.getFileSystem path)) "posix")
       (some open-to-others (Files/getPosixFilePermissions path (make-array LinkOption 0)))))

(defn read-token
  "The token in a file. Throws if anybody but its owner can read the file."
  [file]
  (let [path (.toPath (io/file file))]
    (when (readable-by-others? path)
      (throw (ex-info (str "the token file " path " is open to other users: chmod 600 it") {})))
    (let [token (str/trim (slurp (io/file file) :encoding "UTF-8"))]
      (when (< (count token) 16)
        (throw (ex-info (str "the token file " path " holds no token of 16 characters or more") {})))
      token)))

(defn- utf-8 ^bytes [^String s]
  (.getBytes s StandardCharsets/UTF_8))

(defn authorized?
  "Whether the request carries the token; always true if `token` is nil."
  [^String token ^HttpExchange exchange]
  (or (nil? token)
      (let [header (.getFirst (.getRequestHeaders exchange) "Authorization")]
        ;; Takes the same time wherever the first difference is, so that a token cannot be guessed
        ;; byte by byte.
        (MessageDigest/isEqual (utf-8 (str "Bearer " token)) (utf-8 (or header ""))))))

(defn- declared-length ^long [^HttpExchange exchange]
  (or (some-> (.getFirst (.getRequestHeaders exchange) "Content-Length") parse-long) -1))

(defn read-body
  "The request's body as text, or ::too-large once it is known to exceed `limit` bytes."
  [^HttpExchange exchange limit]
  (if (< limit (declared-length exchange))
    ::too-large
    (with-open [^InputStream in (.getRequestBody exchange)]
      (let [buffer (byte-array 65536)
            out (ByteArrayOutputStream.)]
        (loop []
          (let [n (.read in buffer)]
            (cond
              (neg? n)                  (.toString out StandardCharsets/UTF_8)
              (< limit (+ n (.size out))) ::too-large
              :else                     (do (.write out buffer 0 n) (recur)))))))))
