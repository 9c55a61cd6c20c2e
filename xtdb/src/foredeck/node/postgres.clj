(ns foredeck.node.postgres
  "XTDB's log and documents in Postgres, in fewer steps than xtdb-jdbc takes. Tables and contents
  are the same, so that nodes with either can share a database.

  xtdb-jdbc checks for each document whether it is there and then inserts it, one after the other in
  one transaction. Meanwhile nobody can append to the log, because that locks the table. Here all
  documents take one statement. Also, xtdb-jdbc polls for new transactions ten times a second,
  whatever its configuration says, and a commit spends most of its time waiting for that."
  (:require [clojure.string :as str]
            [juxt.clojars-mirrors.nextjdbc.v1v2v674.next.jdbc :as jdbc]
            [juxt.clojars.mirrors.nippy.v3v4v2.taoensso.nippy :as nippy]
            [xtdb.codec :as c]
            [xtdb.db :as db]
            [xtdb.document-store :as ds]
            [xtdb.io :as xio]
            [xtdb.jdbc :as xtdb-jdbc]
            [xtdb.system :as sys]
            [xtdb.tx.subscribe :as subscribe])
  (:import (java.sql Connection PreparedStatement SQLException SQLTransientConnectionException)
           (xtdb.api ICursor)))

(set! *warn-on-reflection* true)

(def ^:private insert
  "INSERT INTO tx_events (event_key, v, topic, compacted)
   SELECT d.k, d.v, 'docs', 0 FROM unnest(?::text[], ?::bytea[]) AS d(k, v)
   WHERE NOT EXISTS (SELECT 1 FROM tx_events e WHERE e.event_key = d.k AND e.compacted = 0)")

(defn- insert-absent! [pool id-and-docs]
  (with-open [connection ^Connection (jdbc/get-connection pool)
              statement ^PreparedStatement (.prepareStatement connection insert)]
    (let [ids (into-array String (map (comp str key) id-and-docs))
          docs (into-array (Class/forName "[B") (map (comp nippy/freeze val) id-and-docs))]
      (.setArray statement 1 (.createArrayOf connection "text" ids))
      (.setArray statement 2 (.createArrayOf connection "bytea" docs))
      (.executeUpdate statement))))

(defn- replaces?
  "Whether a document replaces one with the same hash: evicted documents, and the arguments of
  transaction functions."
  [[_ doc]]
  (or (c/evicted-doc? doc)
      (some #(and (keyword? %) (= "crux.db.fn" (namespace %))) (keys doc))))

(def ^:private pause-ms 200)

(defn- away?
  "Whether Postgres was not to be reached, or was shutting down."
  [^Throwable e]
  (if (instance? SQLException e)
    (let [state (str (.getSQLState ^SQLException e))]
      (or (instance? SQLTransientConnectionException e)
          (str/starts-with? state "08")
          (str/starts-with? state "57P")))
    ;; A transaction that cannot be rolled back, since its connection is gone, wraps what ended it.
    (some-> (:handling (ex-data e)) away?)))

(defn- serves-request? []
  (str/starts-with? (.getName (Thread/currentThread)) "http-"))

(defn- waiting-for-postgres
  "What `f` returns. While Postgres is away it is tried again: XTDB would end indexing for good. A
  request is not kept waiting. `f` must be such that it can be done twice."
  [f]
  (let [result (try
                 (f)
                 (catch Exception e
                   (if (and (away? e) (not (serves-request?))) ::away (throw e))))]
    (if (= ::away result)
      (do (Thread/sleep (long pause-ms))
          (recur f))
      result)))

(defrecord Documents [pool plain]
  db/DocumentStore
  (submit-docs [_ id-and-docs]
    (let [{replacing true, others false} (group-by (comp boolean replaces?) id-and-docs)]
      (when replacing
        (waiting-for-postgres #(db/submit-docs plain replacing)))
      (when others
        (waiting-for-postgres #(insert-absent! pool others)))))
  (fetch-docs [_ ids]
    (waiting-for-postgres #(db/fetch-docs plain ids))))

(defn ->document-store
  "As `xtdb.jdbc/->document-store`."
  {::sys/deps {:connection-pool `xtdb-jdbc/->connection-pool
               :document-cache 'xtdb.cache/->cache}}
  [{{:keys [pool dialect]} :connection-pool :as options}]
  (ds/->cached-document-store
   (assoc options :document-store (->Documents pool (xtdb-jdbc/->JdbcDocumentStore pool dialect)))))

(defrecord Log [plain poll-sleep-duration]
  db/TxLog
  (submit-tx [_ tx-events] (db/submit-tx plain tx-events))
  (submit-tx [_ tx-events options] (db/submit-tx plain tx-events options))
  (open-tx-log [_ after-tx-id options]
    ;; Where the connection is gone, closing the log must not end the polling, which nobody reports.
    (let [^ICursor log (db/open-tx-log plain after-tx-id options)]
      (reify ICursor
        (hasNext [_] (.hasNext log))
        (next [_] (.next log))
        (close [_] (xio/try-close log)))))
  (latest-submitted-tx [_] (db/latest-submitted-tx plain))
  (subscribe [this after-tx-id f]
    (subscribe/handle-polling-subscription
     this after-tx-id {:poll-sleep-duration poll-sleep-duration} f)))

(defn ->tx-log
  "As `xtdb.jdbc/->tx-log`, with :poll-sleep-duration between two polls for new transactions."
  {::sys/deps {:connection-pool `xtdb-jdbc/->connection-pool}
   ::sys/args {:poll-sleep-duration {:spec ::sys/duration, :default "PT0.02S", :required? true}}}
  [{:keys [connection-pool poll-sleep-duration]}]
  (->Log (xtdb-jdbc/->tx-log {:connection-pool connection-pool :fetch-size 1024})
         poll-sleep-duration))
