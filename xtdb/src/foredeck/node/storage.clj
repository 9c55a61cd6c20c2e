(ns foredeck.node.storage
  "Documents and log in one RocksDB, so that one fsync serves both.

  A transaction's documents are written before its log entry. RocksDB has one write-ahead log for
  everything, in the order of writing, so syncing the entry also syncs the documents before it.
  The documents of a transaction that is being submitted therefore need no fsync of their own."
  (:require [xtdb.kv :as kv]
            [xtdb.system :as sys])
  (:import (org.rocksdb WriteOptions)))

(set! *warn-on-reflection* true)

(def ^:dynamic *log-follows*
  "Whether documents written now are followed by a log entry that is synced. While a transaction
  function is indexed they are not, and are synced by themselves."
  false)

(defn ->documents
  "The document store's view of a `kv-store` that also holds the log and syncs its writes."
  {::sys/deps {:kv-store 'xtdb.rocksdb/->kv-store}}
  [{:keys [kv-store]}]
  (let [unsynced (assoc kv-store :write-options (WriteOptions.))]
    ;; Not closeable: XTDB closes the shared store itself, once.
    (reify kv/KvStore
      (new-snapshot [_] (kv/new-snapshot kv-store))
      (store [_ kvs] (kv/store (if *log-follows* unsynced kv-store) kvs))
      (fsync [_] (kv/fsync kv-store))
      (compact [_] (kv/compact kv-store))
      (count-keys [_] (kv/count-keys kv-store))
      (db-dir [_] (kv/db-dir kv-store))
      (kv-name [_] (kv/kv-name kv-store)))))
