(ns foredeck.node.guard-test
  (:require [clojure.test :refer [deftest is]]
            [foredeck.node.guard :as guard])
  (:import (java.nio.file Files)
           (java.nio.file.attribute FileAttribute PosixFilePermissions)))

(defn- token-file [text mode]
  (let [path (Files/createTempFile "token" "" (make-array FileAttribute 0))]
    (spit (.toFile path) text)
    (Files/setPosixFilePermissions path (PosixFilePermissions/fromString mode))
    (doto (.toFile path) .deleteOnExit)))

(deftest tokens-are-private
  (is (= "0123456789abcdef" (guard/read-token (token-file "0123456789abcdef\n" "rw-------"))))
  (is (thrown-with-msg? Exception #"chmod 600" (guard/read-token (token-file "0123456789abcdef" "rw-r--r--"))))
  (is (thrown-with-msg? Exception #"16 characters" (guard/read-token (token-file "short" "rw-------")))))
