(ns foredeck.node.storage
  "Documents and log in one RocksDB, so that one wait for the disk is enough for both.

  A transaction's documents are written before its place in the log. RocksDB keeps one journal for
  all that it holds, in the order in which it was written, and waiting for its end waits for all
  of it. So the documents of a transaction that is being submitted need no wait of their own."
  (:require [xtdb.kv :as kv]
            [xtdb.system :as sys])
  (:import (org.rocksdb WriteOptions)))

(set! *warn-on-reflection* true)

(def ^:dynamic *log-follows*
  "Whether what is written now is followed by an entry in the log, which waits for the disk. It is
  not while a transaction function is indexed: its documents wait by themselves."
  false)

(defn ->documents
  "What the document store uses of a `kv-store` that also holds the log, and waits for the disk."
  {::sys/deps {:kv-store 'xtdb.rocksdb/->kv-store}}
  [{:keys [kv-store]}]
  (let [unsynced (assoc kv-store :write-options (WriteOptions.))]
    ;; Not closeable: the store that is shared is closed by itself, once.
    (reify kv/KvStore
      (new-snapshot [_] (kv/new-snapshot kv-store))
      (store [_ kvs] (kv/store (if *log-follows* unsynced kv-store) kvs))
      (fsync [_] (kv/fsync kv-store))
      (compact [_] (kv/compact kv-store))
      (count-keys [_] (kv/count-keys kv-store))
      (db-dir [_] (kv/db-dir kv-store))
      (kv-name [_] (kv/kv-name kv-store)))))
