(ns foredeck.node.checkpoint-test
  "A checkpoint of a node in RocksDB, and a node on the copy."
  (:require [clojure.java.io :as io]
            [clojure.test :refer [deftest is]]
            [foredeck.node.checkpoint :as checkpoint]
            [xtdb.api :as xt])
  (:import (java.io Closeable File)
           (java.nio.file Files)
           (java.nio.file.attribute FileAttribute)))

(defn- temporary-folder ^File []
  (.toFile (Files/createTempDirectory "checkpoint" (make-array FileAttribute 0))))

(defn- delete-all [^File folder]
  (run! io/delete-file (reverse (file-seq folder))))

(defn- start ^Closeable [folder]
  (let [store {:kv-store ::log}]
    (xt/start-node {::log {:xtdb/module 'xtdb.rocksdb/->kv-store
                           :db-dir (io/file folder "log")}
                    :xtdb/tx-log store
                    :xtdb/document-store store})))

(defn- put [node id]
  (xt/await-tx node (xt/submit-tx node [[::xt/put {:xt/id id}]])))

(deftest a-copy-holds-what-was-there
  (let [folder (temporary-folder)
        copy (io/file folder "copy")]
    (with-open [node (start (io/file folder "live"))]
      (is (= {:tx-id nil} (checkpoint/save node copy)))
      (put node :before)
      (is (= 0 (:tx-id (checkpoint/save node copy))) "and takes the place of an older one")
      (put node :after))
    (with-open [node (start copy)]
      (xt/sync node)
      (is (= {:xt/id :before} (xt/entity (xt/db node) :before)))
      (is (nil? (xt/entity (xt/db node) :after))))
    (delete-all folder)))

(deftest a-node-in-memory-has-none
  (with-open [node ^Closeable (xt/start-node {})]
    (is (nil? (checkpoint/save node (io/file "never"))))))
