(ns foredeck.node.codec-test
  (:require [clojure.test :refer [deftest is testing]]
            [foredeck.node.codec :as codec]
            [xtdb.api :as xt]))

(deftest keys-of-the-api
  (is (= "tx-id" (codec/kebab-case "txId") (codec/kebab-case "tx-id")))
  (is (= {"txId" 1 "txCommitted?" true}
         (codec/camel-case-keys {::xt/tx-id 1 :tx-committed? true})))
  (is (= [1] (codec/camel-case-keys [1]))))

(deftest json-out
  (testing "document keys keep their namespace"
    (is (= "{\"xt/id\":\"a\",\"f/n\":{\"x\":[1,null,true]}}"
           (codec/write-json {:xt/id "a" :f/n {:x [1 nil true]}}))))
  (testing "times have seconds, keywords are strings"
    (is (= "[\"1970-01-01T00:00:01Z\",\"a/b\"]"
           (codec/write-json [(java.util.Date. 1234) :a/b]))))
  (testing "text is written as it is"
    (is (= "\"é/\u2028😀\"" (codec/write-json "é/\u2028😀")))))

(deftest json-in
  (is (= {:tx-ops [["put" {:xt/id "a"}]]} (codec/read-json "{\"tx-ops\":[[\"put\",{\"xt/id\":\"a\"}]]}")))
  (is (= 1152921504606846976 (codec/read-json "1152921504606846976")))
  (doseq [text ["" "{" "nope"]]
    (is (codec/malformed? (try (codec/read-json text) (catch Exception e e))) text)))

(deftest edn-in
  (is (= {:query '{:find [e]}} (codec/read-edn "{:query {:find [e]}}")))
  (is (codec/malformed? (try (codec/read-edn "{:query {") (catch Exception e e))))
  (testing "nothing is evaluated"
    (is (codec/malformed? (try (codec/read-edn "#=(+ 1 2)") (catch Exception e e))))))

(deftest transaction-operations
  (is (= [[::xt/put {:xt/id "a"} #inst "1970-01-01"]
          [::xt/match "b" nil]
          [::xt/match "1970" {:xt/id "1970"} #inst "1970-01-01T00:00:00.001"]
          [::xt/delete "1970"]]
         (codec/tx-ops {:tx-ops [["put" {:xt/id "a"} "1970-01-01T00:00:00Z"]
                                 ["match" "b" nil]
                                 ["match" "1970" {:xt/id "1970"} "1970-01-01T00:00:00.001Z"]
                                 ["delete" "1970"]]})))
  (is (= [[::xt/put {:xt/id :a}]] (codec/tx-ops {:tx-ops [[::xt/put {:xt/id :a}]]})))
  (is (= [] (codec/tx-ops {}))))

(deftest what-is-no-operation-of-ours
  (doseq [op ["put" ["fn" "f"]
              ["put" {:xt/id "f" :xt/fn '(fn [ctx] [])}]
              [::xt/cas nil {:xt/id "f" :xt/fn '(fn [ctx] [])}]
              ["match" "f" {:xt/id "f" :xt/fn '(fn [ctx] [])}]]]
    (is (thrown? xtdb.IllegalArgumentException (codec/tx-ops {:tx-ops [op]})) (pr-str op))))
