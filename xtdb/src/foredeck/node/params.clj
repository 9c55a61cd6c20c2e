(ns foredeck.node.params
  "Query parameters: in kebab or camel case, each read as the type that its name implies."
  (:require [clojure.instant :as instant]
            [clojure.string :as str]
            [foredeck.node.codec :as codec]
            [xtdb.error :as err])
  (:import (java.net URLDecoder)
           (java.nio.charset StandardCharsets)))

(set! *warn-on-reflection* true)

(defn- invalid [k text]
  (err/illegal-arg :invalid-parameter
                   {::err/message (format "invalid value for %s: %s" (name k) (pr-str text))}))

(defn- read-boolean [text]
  (case text "true" true "false" false nil))

(defn- read-date [text]
  (try (instant/read-instant-date text) (catch Exception _ nil)))

(defn- read-keyword [text]
  (keyword (str/replace text #"^:" "")))

(def ^:private readers
  {:eid              identity
   :eid-edn          codec/read-edn
   :eid-json         codec/read-json
   :history          read-boolean
   :sort-order       read-keyword
   :with-corrections read-boolean
   :with-docs        read-boolean
   :tx-id            parse-long
   :start-tx-id      parse-long
   :end-tx-id        parse-long
   :await-tx-id      parse-long
   :await-tx-timeout parse-long
   :timeout          parse-long
   :valid-time       read-date
   :tx-time          read-date
   :start-valid-time read-date
   :end-valid-time   read-date
   :start-tx-time    read-date
   :end-tx-time      read-date})

(defn- decode [^String s]
  (URLDecoder/decode s StandardCharsets/UTF_8))

(defn parse
  "The parameters of a raw query string that this API knows, by keyword; others are ignored.
  Throws `xtdb.IllegalArgumentException` for a value that cannot be read."
  [raw]
  (into {}
        (keep (fn [pair]
                (let [[k v] (str/split pair #"=" 2)
                      k (keyword (codec/kebab-case (decode k)))
                      text (decode (or v ""))]
                  (when-let [read (readers k)]
                    (let [value (read text)]
                      (when (nil? value)
                        (throw (invalid k text)))
                      [k value])))))
        (some-> raw (str/split #"&"))))
