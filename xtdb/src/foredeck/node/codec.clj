(ns foredeck.node.codec
  "JSON and EDN bodies, written as XTDB's own HTTP server writes them.

  In JSON, document keys keep their namespace (\"xt/id\"), keys of the API's own maps are in camel
  case without one (\"txId\"), times have seconds only, keywords are strings."
  (:require [clojure.data.json :as json]
            [clojure.instant :as instant]
            [clojure.string :as str]
            [foredeck.node.commit :as commit]
            [xtdb.api :as xt]
            [xtdb.codec :as c]
            [xtdb.error :as err]
            [xtdb.tx.conform :as conform])
  (:import (java.time Instant ZoneOffset)
           (java.time.format DateTimeFormatter)
           (java.util Date)
           (xtdb.codec EDNId Id)))

(set! *warn-on-reflection* true)

(defn kebab-case
  "`txId` as `tx-id`; what is in kebab case already stays as it is."
  [s]
  (str/lower-case (str/replace s #"([a-z0-9])([A-Z])" "$1-$2")))

(defn- camel-case [k]
  (let [[head & more] (str/split (name k) #"-")]
    (apply str head (map str/capitalize more))))

(defn camel-case-keys
  "A map of the API with its keys as JSON has them; anything else unchanged."
  [m]
  (if (map? m) (update-keys m camel-case) m))

;; Writing

(def ^:private ^DateTimeFormatter seconds
  (.withZone (DateTimeFormatter/ofPattern "yyyy-MM-dd'T'HH:mm:ss'Z'") ZoneOffset/UTC))

(defn- json-key [k]
  (if (keyword? k) (subs (str k) 1) (str k)))

(defn- json-value [v]
  (condp instance? v
    Date    (.format seconds (Instant/ofEpochMilli (.getTime ^Date v)))
    Id      (str v)
    EDNId   (str v)
    (if (keyword? v) (subs (str v) 1) v)))

(defn- plain
  "A value that data.json can write: its :value-fn does not reach into vectors."
  [v]
  (cond
    (map? v)  (persistent! (reduce-kv (fn [m k x] (assoc! m (json-key k) (plain x)))
                                      (transient {}) v))
    (coll? v) (mapv plain v)
    :else     (json-value v)))

(defn write-json
  "`v` as JSON text. Characters beyond ASCII are written as they are."
  ^String [v]
  (json/write-str (plain v)
                  :escape-unicode false
                  :escape-js-separators false
                  :escape-slash false
                  :default-write-fn (fn [x out _] (json/write (str x) out))))

(defn write-edn
  "`v` as EDN text in full, whatever the printer's limits are."
  ^String [v]
  (binding [*print-length* nil
            *print-level* nil
            *print-namespace-maps* false]
    (pr-str v)))

;; Reading

(defn- malformed [format cause]
  (ex-info (str "Malformed " (pr-str (str "application/" format)) " request.")
           {::malformed true} cause))

(defn malformed?
  "Whether `e` was thrown because a request could not be read."
  [e]
  (::malformed (ex-data e)))

(defn read-json
  "JSON text with keywords as keys."
  [^String text]
  (try
    (json/read-str text :key-fn keyword)
    (catch Exception e (throw (malformed "json" e)))))

(defn read-edn
  "EDN text, with XTDB's own tags."
  [^String text]
  (try
    (c/read-edn-string-with-readers text)
    (catch Exception e (throw (malformed "edn" e)))))

;; Transactions

(defn- refuse-function []
  (throw (err/illegal-arg :tx-fns-disabled
                          {::err/message "this node takes no transaction function but its own"})))

(defn- no-function [v]
  (if (and (map? v) (:xt/fn v)) (refuse-function) v))

(def ^:private operations
  {"put" ::xt/put, "delete" ::xt/delete, "match" ::xt/match, "cas" ::xt/cas, "evict" ::xt/evict
   "fn" ::xt/fn})

(def ^:private times-from
  "The index of an operation's first valid time."
  {::xt/put 2, ::xt/delete 2, ::xt/match 3, ::xt/cas 3})

(defn- read-time [v]
  (if (string? v)
    (try (instant/read-instant-date v) (catch Exception _ v))
    v))

(defn invokes-function?
  "Whether one of these operations, as `tx-ops` gives them, is a call of a transaction function."
  [ops]
  (some #(= ::xt/fn (first %)) ops))

(defn- known-operation [op read-time]
  (let [[kind id :as op] (update op 0 #(operations % %))
        times (times-from kind)]
    (when (and (= ::xt/fn kind) (not= commit/id id))
      (refuse-function))
    (if times
      (into [] (map-indexed (fn [n v] (if (< n times) (no-function v) (read-time v)))) op)
      op)))

(defn tx-ops
  "Transaction operations from a body in either format, as `submit-tx` takes them, which also
  validates them. Throws `xtdb.IllegalArgumentException` for an operation that is not a vector,
  and for transaction functions other than the node's own."
  [body]
  ;; Usually all of them have the same time: it is parsed once.
  (let [read-time (memoize read-time)]
    (mapv (fn [op]
            (if (vector? op) (known-operation op read-time) (conform/conform-tx-op op)))
          (:tx-ops body))))
