(ns foredeck.node.test-runner
  "Runs all tests: java -cp JARS:src:test clojure.main -m foredeck.node.test-runner"
  (:require [clojure.test :as test]))

(def namespaces
  '[foredeck.node.codec-test
    foredeck.node.config-test
    foredeck.node.guard-test
    foredeck.node.postgres-test
    foredeck.node.server-test])

(defn -main []
  (run! require namespaces)
  (let [{:keys [fail error] :as summary} (apply test/run-tests namespaces)]
    (shutdown-agents)
    (println (format "%d passed, %d failed" (:pass summary) (+ fail error)))
    (System/exit (if (test/successful? summary) 0 1))))
