(ns foredeck.node.handlers
  "The part of XTDB 1's HTTP API that foredeck uses: one function per path.

  A request is {:method :params :body :content-type}, an answer {:status :body}, where :body is
  data, :api? marks a map of the API (its keys are in camel case in JSON) and :entries? a list of
  such maps. `answer` turns what a handler throws into an answer, with the statuses and bodies of
  XTDB's own server."
  (:require [clojure.string :as str]
            [foredeck.node.codec :as codec]
            [foredeck.node.commit :as commit]
            [foredeck.node.storage :as storage]
            [xtdb.api :as xt]
            [xtdb.error :as err])
  (:import (java.time Duration)
           (java.util.concurrent TimeoutException)
           (xtdb.api NodeOutOfSyncException)))

(set! *warn-on-reflection* true)

(defn- ok [body] {:status 200 :body body})

(defn- api-map [m] {:status 200 :body m :api? true})

(defn- not-found [message] {:status 404 :body {:error message}})

(defn- missing [parameter]
  (err/illegal-arg (keyword (str "missing-" (name parameter)))
                   {::err/message (str "Missing " (name parameter))}))

(defn- required [params k]
  (let [v (get params k)]
    (if (some? v) v (throw (missing k)))))

(defn- wait-time
  "How long a request may wait: what it asks for, within what the node allows."
  ^Duration [{:keys [request-timeout]} asked]
  (Duration/ofMillis (min request-timeout (or asked request-timeout))))

;; Reading

(defn- basis [{:keys [valid-time tx-time tx-id]}]
  (cond-> {}
    valid-time (assoc ::xt/valid-time valid-time)
    tx-time    (assoc-in [::xt/tx ::xt/tx-time] tx-time)
    tx-id      (assoc-in [::xt/tx ::xt/tx-id] tx-id)))

(defn- await-asked
  "Wait until the transaction that the request names is indexed."
  [{:keys [node limits]} {:keys [await-tx-id await-tx-timeout]}]
  (when await-tx-id
    (xt/await-tx node {::xt/tx-id await-tx-id} (wait-time limits await-tx-timeout))))

(defn- db
  "The database as of the request's basis."
  [context params]
  (await-asked context params)
  (xt/db (:node context) (basis params)))

(defn- eid [{:keys [eid eid-edn eid-json]}]
  (let [id (first (filter some? [eid-edn eid-json eid]))]
    (if (some? id) id (throw (missing :eid)))))

(defn- tx-bound [params time-key id-key]
  (not-empty (cond-> {}
               (time-key params) (assoc ::xt/tx-time (time-key params))
               (id-key params)   (assoc ::xt/tx-id (id-key params)))))

(defn- history [context {:keys [sort-order] :as params}]
  (let [options {:with-corrections? (:with-corrections params)
                 :with-docs?        (:with-docs params)
                 :start-valid-time  (:start-valid-time params)
                 :end-valid-time    (:end-valid-time params)
                 :start-tx          (tx-bound params :start-tx-time :start-tx-id)
                 :end-tx            (tx-bound params :end-tx-time :end-tx-id)}]
    (with-open [snapshot ^java.io.Closeable (xt/open-db (:node context) (basis params))]
      {:status   200
       :body     (vec (xt/entity-history snapshot (eid params) sort-order options))
       :entries? true})))

(defn entity
  "One document, or with `history=true` the versions that it has had."
  [context {:keys [params]}]
  (let [id (eid params)]
    (if (:history params)
      (do (await-asked context params)
          (history context params))
      (if-let [doc (not-empty (xt/entity (db context params) id))]
        (ok doc)
        (not-found (str id " entity not found"))))))

(defn entity-tx
  "Which transaction wrote a document."
  [context {:keys [params]}]
  (let [id (eid params)]
    (if-let [tx (xt/entity-tx (db context params) id)]
      (api-map tx)
      (not-found (str id " entity-tx not found")))))

(defn query
  "A Datalog query; the body is EDN, {:query .. :in-args [..]}."
  [context {:keys [params body content-type]}]
  (when-not (str/includes? (or content-type "") "edn")
    (throw (ex-info "a query is sent as application/edn" {::unreadable true})))
  (let [{:keys [query in-args]} (codec/read-edn body)]
    (when-not query
      (throw (missing :query)))
    (with-open [snapshot ^java.io.Closeable (xt/open-db (:node context) (basis params))]
      (ok (vec (apply xt/q snapshot query in-args))))))

(defn status
  "Versions, sizes, whether indexing has failed, and the one transaction function that is accepted."
  [{:keys [node]} _]
  (api-map (assoc (xt/status node) :commit-function commit/id)))

(defn attribute-stats
  "How often each attribute occurs."
  [{:keys [node]} _]
  (ok (xt/attribute-stats node)))

;; Transactions

(defn- outcome
  "Whether a transaction has committed, if the request waits for that; nil if it takes too long.
  The transaction is in the log already, so no error in here may look as if it was not."
  [{:keys [node limits]} tx {:keys [await-tx-timeout]}]
  (when await-tx-timeout
    (try
      (xt/await-tx node tx (wait-time limits await-tx-timeout))
      {:tx-committed? (xt/tx-committed? node tx)}
      (catch Exception _ nil))))

(defn submit-tx
  "Append a transaction to the log; whether its matches hold is decided when it is indexed. With
  `await-tx-timeout` the answer waits for that and says so."
  [{:keys [node] :as context} {:keys [body content-type params]}]
  (let [read (if (str/includes? (or content-type "") "edn") codec/read-edn codec/read-json)
        ops (codec/tx-ops (read body))]
    (when (codec/invokes-function? ops)
      (commit/ensure-known node))
    (let [tx (binding [storage/*log-follows* true] (xt/submit-tx node ops))]
      (assoc (api-map (merge tx (outcome context tx params))) :status 202))))

(defn await-tx
  "Wait until a transaction is indexed here."
  [{:keys [node limits]} {:keys [params]}]
  (api-map (xt/await-tx node
                        {::xt/tx-id (required params :tx-id)}
                        (wait-time limits (:timeout params)))))

(defn sync-node
  "Wait until everything in the log now is indexed here."
  [{:keys [node limits]} {:keys [params]}]
  (api-map {::xt/tx-time (xt/sync node (wait-time limits (:timeout params)))}))

(defn tx-committed
  "Whether all matches of an indexed transaction held. One that is not indexed is answered with
  500, as XTDB's server does."
  [{:keys [node] :as context} {:keys [params]}]
  (await-asked context params)
  (try
    (api-map {:tx-committed? (xt/tx-committed? node {::xt/tx-id (required params :tx-id)})})
    (catch NodeOutOfSyncException e
      {:status 500 :body {:type "exception" :class (.getName (class e))}})))

(defn- latest [tx what]
  (if tx (api-map tx) (not-found (str "No " what " found."))))

(defn latest-completed-tx
  "The last transaction that is indexed here."
  [{:keys [node]} _]
  (latest (xt/latest-completed-tx node) "latest-completed-tx"))

(defn latest-submitted-tx
  "The last transaction in the log."
  [{:keys [node]} _]
  (latest (xt/latest-submitted-tx node) "latest-submitted-tx"))

(def routes
  "{path {method handler}}"
  {"/_xtdb/status"              {"GET" status}
   "/_xtdb/entity"              {"GET" entity}
   "/_xtdb/entity-tx"           {"GET" entity-tx}
   "/_xtdb/query"               {"POST" query}
   "/_xtdb/attribute-stats"     {"GET" attribute-stats}
   "/_xtdb/sync"                {"GET" sync-node}
   "/_xtdb/await-tx"            {"GET" await-tx}
   "/_xtdb/tx-committed"        {"GET" tx-committed}
   "/_xtdb/latest-completed-tx" {"GET" latest-completed-tx}
   "/_xtdb/latest-submitted-tx" {"GET" latest-submitted-tx}
   "/_xtdb/submit-tx"           {"POST" submit-tx}})

;; Answers

(defn- spec-problem
  "Where a query does not conform, as text: the deepest place that the spec complains about."
  [e]
  (when-let [problems (seq (get-in (ex-data e) [:explain :clojure.spec.alpha/problems]))]
    (let [{:keys [in val]} (apply max-key (comp count :in) problems)]
      (str ", at " (codec/write-edn in) ": " (codec/write-edn val)))))

(defn- first-cause ^Throwable [e]
  (last (take-while some? (iterate ex-cause e))))

(defn- failure [^Throwable e]
  (cond
    (codec/malformed? e)
    {:status 400 :body {:error (ex-message e)}}

    (::unreadable (ex-data e))
    {:status 400 :body {:error (ex-message e)}}

    (or (instance? xtdb.IllegalArgumentException e) (instance? NodeOutOfSyncException e))
    {:status 400 :body (assoc (select-keys (ex-data e) [::err/error-type ::err/error-key
                                                        ::err/message :requested :available])
                              :error (str (ex-message e) (spec-problem e)))
     :api? true}

    (instance? TimeoutException e)
    {:status 500 :body {:type "exception" :class (.getName (class e))}}

    :else
    {:status 500
     :body (cond-> {:type "exception" :class (.getName (class e)) :message (ex-message e)}
             (ex-cause e) (assoc :reason (ex-message (first-cause e))))
     :cause e}))

(defn- invalid-query? [^Throwable e]
  (and (instance? clojure.lang.ExceptionInfo e) (:clojure.spec.alpha/problems (ex-data e))))

(defn answer
  "The answer to a request. Never throws; an unexpected exception is in :cause, for the log."
  [context {:keys [method path] :as request}]
  (let [methods (routes path)
        handler (get methods method)]
    (try
      (cond
        handler (handler context request)
        methods {:status 405 :body {:error (str method " is not served at " path)}}
        :else   (not-found (str "nothing at " path)))
      (catch Exception e
        (if (invalid-query? e)
          {:status 400 :body {:error (ex-message e)}}
          (failure e))))))
