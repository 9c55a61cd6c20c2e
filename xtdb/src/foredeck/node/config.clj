(ns foredeck.node.config
  "The configuration of a node: an EDN file with two tags for what differs between machines.

     #foredeck/path \"index\"             a folder below the data folder
     #foredeck/env [\"NAME\" \"default\"]   an environment variable; without a default it must be set

  The map has :http (see `defaults`), :xtdb (the topology that `xtdb.api/start-node` takes), and
  any other module that the topology refers to by its key."
  (:refer-clojure :exclude [load-file])
  (:require [clojure.edn :as edn]
            [clojure.java.io :as io]
            [clojure.set :as set]
            [clojure.string :as str])
  (:import (java.io File)))

(def defaults
  "Limits of the HTTP side. Sizes in bytes, times in milliseconds.

  :max-body-size    a longer request is answered with 413
  :threads          requests that are served at once
  :queue-size       requests that may wait for a thread; further ones are answered with 503
  :request-timeout  the longest that a request waits for a transaction to be indexed
  :stop-timeout     how long a stopping node waits for requests that are being answered"
  {:port            0
   :max-body-size   (* 128 1024 1024)
   :threads         16
   :queue-size      64
   :request-timeout 30000
   :stop-timeout    5000})

(defn- path-reader [^File data-dir]
  (fn [relative]
    (when-not data-dir
      (throw (ex-info "this configuration needs a data folder: --data-dir DIR" {:path relative})))
    (str (io/file data-dir relative))))

(defn- env-reader [getenv]
  (fn [form]
    (let [[variable default :as spec] (if (string? form) [form] form)
          value (getenv variable)]
      (cond
        (not (str/blank? value)) value
        (< 1 (count spec))       default
        :else                    (throw (ex-info (str "the environment variable " variable
                                                      " must be set")
                                                 {:variable variable}))))))

(defn parse
  "The configuration in `text`. Options: :data-dir (a File or nil), :getenv (a function)."
  [text {:keys [data-dir getenv] :or {getenv #(System/getenv %)}}]
  (let [config (edn/read-string {:readers {'foredeck/path (path-reader data-dir)
                                           'foredeck/env  (env-reader getenv)}}
                                text)]
    (when-not (map? config)
      (throw (ex-info "the configuration is not a map" {})))
    (when-let [unknown (seq (set/difference (set (keys (:http config))) (set (keys defaults))))]
      (throw (ex-info (str "unknown keys under :http: " (str/join ", " unknown)) {})))
    (update config :http #(merge defaults %))))

(defn load-file
  "`parse` of a file."
  [file options]
  (parse (slurp (io/file file) :encoding "UTF-8") options))

(defn topology
  "The argument of `xtdb.api/start-node`: :xtdb, and the modules that it refers to."
  [config]
  (merge (dissoc config :http :xtdb) (:xtdb config)))
