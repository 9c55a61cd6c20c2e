(ns foredeck.node.postgres-test
  (:require [clojure.test :refer [deftest is]]
            [foredeck.node.postgres :as postgres]
            [xtdb.db :as db])
  (:import (java.sql SQLException)
           (xtdb.api ICursor)))

(defn- gone [] (SQLException. "This connection has been closed." "08003"))

(defn- failing-first
  "A function that throws `e` when it is called first, and returns :done after that."
  [e]
  (let [calls (atom 0)]
    #(if (= 1 (swap! calls inc)) (throw e) :done)))

(def ^:private waiting #'postgres/waiting-for-postgres)

(deftest what-fails-since-postgres-is-away-is-done-again
  (is (= :done (waiting (failing-first (gone)))))
  (is (= :done (waiting (failing-first (ex-info "Rollback failed handling"
                                                {:rollback (gone) :handling (gone)}))))))

(deftest what-fails-otherwise-is-not-done-again
  (let [full (SQLException. "No space left on device" "53100")]
    (is (thrown? SQLException (waiting (failing-first full))))
    (is (thrown? Exception (waiting (failing-first (ex-info "Rollback failed handling"
                                                            {:rollback (gone) :handling full})))))
    (is (thrown? Exception (waiting (failing-first (ex-info "something else" {})))))))

(deftest a-log-whose-connection-is-gone-can-be-closed
  (let [plain (reify db/TxLog
                (open-tx-log [_ _ _]
                  (reify ICursor
                    (hasNext [_] true)
                    (next [_] :tx)
                    (close [_] (throw (gone))))))]
    (with-open [^ICursor log (db/open-tx-log (postgres/->Log plain nil) nil {})]
      (is (= :tx (.next log))))))
