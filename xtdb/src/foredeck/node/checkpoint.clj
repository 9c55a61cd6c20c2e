(ns foredeck.node.checkpoint
  "A copy of log and documents while the node goes on: a checkpoint of the RocksDB that holds both,
  which is made of hard links and so costs neither time nor space. The index is left out, it is
  rebuilt from the two."
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
  "Write a checkpoint into the folder `dir`, in place of an older one: {:tx-id N}, where the copy
  holds the log up to N at least (nil: nothing was in it). nil where log and documents do not lie
  in one RocksDB."
  [node ^File dir]
  (when-let [store (shared-store node)]
    (let [latest (::xt/tx-id (xt/latest-submitted-tx node))]
      (cp/save-checkpoint store (doto (io/file dir "log") io/make-parents))
      {:tx-id latest})))
