(ns foredeck.node.checkpoint
  "Copies log and documents while the node keeps running: a checkpoint of the RocksDB that holds
  both. It consists of hard links, so it takes neither time nor space. The index is left out,
  since it can be rebuilt from the two."
  (:require [clojure.java.io :as io]
            [xtdb.api :as xt]
            [xtdb.checkpoint :as cp]
            [xtdb.kv :as kv])
  (:import (java.io File)))

(defn- unwrapped
  "The store behind a document store's cache."
  [document-store]
  (or (:document-store document-store) document-store))

(defn- shared-store
  "The store on disk that holds both log and documents; nil where there is none."
  [node]
  (let [log (:kv-store (:tx-log node))
        documents (:kv-store (unwrapped (:document-store node)))
        folder (some-> log kv/db-dir)]
    (when (and folder (= folder (some-> documents kv/db-dir)))
      log)))

(defn save
  "Write a checkpoint into the folder `dir`, replacing an older one. Returns {:tx-id N}: the copy
  holds the log at least up to N (nil if the log was empty). Returns nil where log and documents
  are not in one RocksDB."
  [node ^File dir]
  (when-let [store (shared-store node)]
    (let [latest (::xt/tx-id (xt/latest-submitted-tx node))]
      (cp/save-checkpoint store (doto (io/file dir "log") io/make-parents))
      {:tx-id latest})))
