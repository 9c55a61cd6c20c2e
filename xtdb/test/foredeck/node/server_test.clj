(ns foredeck.node.server-test
  "A memory node over real HTTP."
  (:require [clojure.data.json :as json]
            [clojure.edn :as edn]
            [clojure.string :as str]
            [clojure.test :refer [deftest is testing use-fixtures]]
            [foredeck.node.commit :as commit]
            [foredeck.node.config :as config]
            [foredeck.node.server :as server]
            [xtdb.api :as xt])
  (:import (java.io Closeable)
           (java.net URI)
           (java.net.http HttpClient HttpRequest HttpRequest$BodyPublishers HttpResponse
                          HttpResponse$BodyHandlers)
           (java.util.concurrent.atomic AtomicLong)))

(def token "a token of the test")
(def ^:dynamic *port* nil)
(def ^:dynamic *in-flight* nil)
(def client (HttpClient/newHttpClient))

(defn with-server [limits f]
  (with-open [node ^Closeable (xt/start-node {:xtdb/query-engine {:fn-allow-list []}})
              http ^Closeable (server/start node {:limits (merge config/defaults limits)
                                                  :token token})]
    (binding [*port* (:port http)
              *in-flight* (:in-flight (:context http))]
      (f))))

(use-fixtures :each #(with-server {:max-body-size 100000} %))

(defn call
  "[status body] of one request; options :token, :type, :accept."
  [method path body & {:as options}]
  (let [{:keys [accept type] :or {accept "application/json" type "application/json"}} options
        request (-> (HttpRequest/newBuilder (URI. (str "http://127.0.0.1:" *port* path)))
                    (.header "Authorization" (str "Bearer " (:token options token)))
                    (.header "Accept" accept)
                    (.header "Content-Type" type)
                    (.method method (if body
                                      (HttpRequest$BodyPublishers/ofString body)
                                      (HttpRequest$BodyPublishers/noBody)))
                    .build)
        response ^HttpResponse (.send ^HttpClient client request (HttpResponse$BodyHandlers/ofString))
        read (if (str/includes? accept "json")
               json/read-str
               #(edn/read-string {:default tagged-literal} %))]
    [(.statusCode response) (read (.body response))]))

(defn fetch [path] (call "GET" (str "/_xtdb/" path) nil))

(defn submit [& ops]
  (call "POST" "/_xtdb/submit-tx" (json/write-str {:tx-ops ops} :escape-slash false)))

(defn query [text]
  (call "POST" "/_xtdb/query" text :type "application/edn"))

(defn commit [& ops]
  (let [[_ {id "txId"}] (apply submit ops)]
    (fetch (str "await-tx?tx-id=" id "&timeout=10000"))
    [id (get-in (fetch (str "tx-committed?tx-id=" id)) [1 "txCommitted?"])]))

(deftest a-document-is-written-and-read
  (is (= [0 true] (commit ["put" {"xt/id" "a" "f/x" 1} "1970-01-01T00:00:00Z"])))
  (is (= [200 {"xt/id" "a" "f/x" 1}] (fetch "entity?eid=a")))
  (is (= [200 {"xt/id" "a" "f/x" 1}] (fetch "entity?eidJson=%22a%22")))
  (is (= [404 {"error" "b entity not found"}] (fetch "entity?eid=b")))
  (let [[status tx] (fetch "entity-tx?eid=a")]
    (is (= [200 0 "1970-01-01T00:00:00Z"] [status (tx "txId") (tx "validTime")]))
    (is (= #{"id" "contentHash" "validTime" "txTime" "txId"} (set (keys tx))))))

(deftest a-match-that-fails-is-told-by-tx-committed
  (commit ["put" {"xt/id" "a" "f/x" 1}])
  (let [[status {id "txId"}] (submit ["match" "a" nil] ["put" {"xt/id" "a" "f/x" 2}])]
    (is (= [202 1] [status id]))
    (is (= [200 {"txCommitted?" false}]
           (fetch "tx-committed?tx-id=1&await-tx-id=1&await-tx-timeout=9000")))
    (is (= [200 {"txCommitted?" false}] (fetch "tx-committed?tx-id=1"))))
  (is (= [2 true] (commit ["match" "a" {"xt/id" "a" "f/x" 1}] ["put" {"xt/id" "a" "f/x" 2}]))))

(deftest versions-by-transaction
  (dotimes [n 3] (commit ["put" {"xt/id" "a" "f/x" n} "1970-01-01T00:00:00Z"]))
  (is (= [0 1 2] (map #(get-in (fetch (str "entity?eid=a&tx-id=" %)) [1 "f/x"]) (range 3))))
  (let [[status versions] (fetch (str "entity?eid=a&history=true&sort-order=asc"
                                      "&with-docs=true&with-corrections=true"))]
    (is (= 200 status))
    (is (= [[0 0] [1 1] [2 2]] (map (juxt #(% "txId") #(get-in % ["doc" "f/x"])) versions))))
  (is (= [200 []] (fetch "entity?eid=none&history=true&sort-order=asc")))
  (is (= 500 (first (fetch "entity?eid=a&history=true"))))
  (is (= 400 (first (fetch "entity?eid=a&tx-id=99")))))

(deftest queries
  (commit ["put" {"xt/id" "a" "f/x" 1}] ["put" {"xt/id" "b" "f/x" 2}])
  (is (= [200 [["b"]]] (query "{:query {:find [?e] :in [?x] :where [[?e :f/x ?x]]} :in-args [2]}")))
  (is (= 400 (first (query "{:query {:find [?y] :where [[?e :f/x ?x]]}}"))))
  (is (= 400 (first (query "{:query {"))))
  (is (= 400 (first (query "{}"))))
  (testing "where a query does not conform is said"
    (is (str/ends-with? (get-in (query "{:query {:find [?e] :where [[?e :f/x] [?e]]}}") [1 "error"])
                        ", at [:where 1 0]: ?e")))
  (is (= 400 (first (call "POST" "/_xtdb/query" "{}"))))
  (testing "functions beyond XTDB's own list are refused"
    (is (= 400 (first (query "{:query {:find [?y] :where [[?e :f/x] [(slurp \"pom.xml\") ?y]]}}")))))
  (testing "answers in EDN"
    (is (= [200 [[:a]]] (do (call "POST" "/_xtdb/submit-tx" "{:tx-ops [[:xtdb.api/put {:xt/id :a :f/k :a}]]}"
                                  :type "application/edn")
                            (fetch "sync")
                            (call "POST" "/_xtdb/query" "{:query {:find [?k] :where [[_ :f/k ?k]]}}"
                                  :type "application/edn" :accept "application/edn"))))))

(defn ordered
  "A commit that the node orders, of versions of the documents in `puts`; of another store where
  it has a time of its own."
  [token expect-or-at & puts]
  (let [at (when (number? expect-or-at) expect-or-at)
        expect (if at [] expect-or-at)
        [status answer]
        (call "POST" "/_xtdb/submit-tx?await-tx-timeout=10000"
              (json/write-str
               {:tx-ops [["fn" commit/id
                          {:namespace "n" :now 5 :at at :unless [(str "n/tx/" token)] :expect expect
                           :record {"xt/id" (str "n/tx/" token) "n/tx_token" token}
                           :puts (for [[id kind] puts]
                                   {"xt/id" id "n/token" token "n/kind" kind "n/identity" kind})}]]}
               :escape-slash false))]
    (when (= 202 status) (answer "txCommitted?"))))

(deftest commits-that-the-node-orders
  (is (= commit/id (get-in (fetch "status") [1 "commitFunction"])))
  (is (false? (ordered "t0" [] ["a" "k"])) "without a clock there is nothing to go on from")
  (commit ["put" {"xt/id" "n/clock" "n/clock_seq" 3 "n/clock_time" 9 "n/clock_revision" 4}
           "1970-01-01T00:00:00.004Z"])
  (is (true? (ordered "t1" [{:eid "a" :token nil}] ["a" "k"] ["b" "k"])))
  (is (= {"xt/id" "b" "n/token" "t1" "n/kind" "k" "n/identity" "k"
          "n/time" 10 "n/born" (inc (* 4 1048576)) "n/irregular" false}
         (second (fetch "entity?eid=b"))))
  (is (= {"xt/id" "n/clock" "n/clock_seq" 4 "n/clock_time" 10 "n/clock_token" "t1"
          "n/clock_revision" 5}
         (second (fetch "entity?eid=n/clock"))))
  (is (false? (ordered "t1" [] ["c" "k"])) "once only")
  (is (false? (ordered "t2" [{:eid "a" :token "t0"}] ["c" "k"])) "another version is expected")
  (is (false? (ordered "t2" [] ["a" "other"])) "another identity")
  (is (= 404 (first (fetch "entity?eid=c"))))
  (is (true? (ordered "t2" [{:eid "a" :token "t1"}] ["a" "k"])))
  (is (= (* 4 1048576) (get-in (fetch "entity?eid=a") [1 "n/born"])) "a version keeps the first place"))

(deftest commits-of-other-stores
  (commit ["put" {"xt/id" "n/clock" "n/clock_seq" 3 "n/clock_time" 9 "n/clock_revision" 4}
           "1970-01-01T00:00:00.004Z"])
  (let [version #(let [[_ doc] (fetch (str "entity?eid=" %))] [(doc "n/time") (doc "n/irregular")])]
    (is (true? (ordered "t1" 20 ["a" "k"])))
    (is (= [20 false] (version "a")) "later than all before it")
    (is (true? (ordered "t2" 20 ["b" "k"])))
    (is (= [20 true] (version "b")) "not later")
    (is (false? (ordered "t3" 20 ["a" "k"])) "a version that is not older is there")
    (is (true? (ordered "t3" [] ["a" "k"] ["b" "k"])))
    (is (= [[21 false] [21 true]] [(version "a") (version "b")]) "once irregular, always")
    (is (= 21 (get-in (fetch "entity?eid=n/clock") [1 "n/clock_time"])))))

(deftest what-cannot-be-read-is-400
  (doseq [body ["{" "[1" "{\"tx-ops\":[[\"nope\"]]}" "{\"tx-ops\":[[\"put\",{\"x\":1}]]}"
                "{\"tx-ops\":[[\"put\",\"text\"]]}" "{\"tx-ops\":[\"put\"]}" "{\"tx-ops\":[[]]}"
                "{\"tx-ops\":[[\"put\",{\"xt/id\":\"a\"},\"no time\"]]}"
                "{\"tx-ops\":[[\"fn\",\"f\"]]}"]]
    (is (= 400 (first (call "POST" "/_xtdb/submit-tx" body))) body))
  (is (= 400 (first (fetch "entity"))))
  (is (= 400 (first (fetch "await-tx?tx-id=many"))))
  (is (= 202 (first (call "POST" "/_xtdb/submit-tx" "{\"other\":1}"))) "an empty transaction"))

(deftest waiting-ends
  (let [[status body] (fetch "await-tx?tx-id=9&timeout=20")]
    (is (= 500 status))
    (is (str/includes? (body "class") "TimeoutException")))
  (is (= 500 (first (fetch "entity?eid=a&await-tx-id=9&await-tx-timeout=20"))))
  (is (= 500 (first (fetch "tx-committed?tx-id=9")))))

(deftest latest-transactions
  (is (= 404 (first (fetch "latest-submitted-tx")) (first (fetch "latest-completed-tx"))))
  (commit ["put" {"xt/id" "a"}])
  (is (= [200 {"txId" 0}] (fetch "latest-submitted-tx")))
  (is (= 0 (get-in (fetch "latest-completed-tx") [1 "txId"]))))

(deftest only-with-the-token
  (doseq [wrong ["" "other" (str token "x")]]
    (is (= 401 (first (call "GET" "/_xtdb/status" nil :token wrong))) wrong))
  (is (= 200 (first (fetch "status")))))

(deftest only-what-is-served
  (is (= 404 (first (fetch "nope"))))
  (is (= 405 (first (call "DELETE" "/_xtdb/entity" nil))))
  (is (= 413 (first (call "POST" "/_xtdb/submit-tx" (apply str (repeat 100001 \x)))))))

(defn wait-until
  "Return as soon as `done?` is true, 30 seconds later at the latest."
  [done?]
  (let [deadline (+ (System/nanoTime) (* 30 1000000000))]
    (while (not (or (done?) (< deadline (System/nanoTime))))
      (Thread/sleep 5))))

(deftest a-full-queue-is-said
  (with-server {:threads 1 :queue-size 1}
    (fn []
      (let [port *port*
            ask (fn [timeout]
                  (future (binding [*port* port]
                            (try (first (fetch (str "await-tx?tx-id=9&timeout=" timeout)))
                                 (catch java.io.IOException _ :dropped)))))
            ;; The only thread is taken until the others are there.
            first-answer (ask 2000)
            _ (wait-until #(pos? (.get ^AtomicLong *in-flight*)))
            answers (cons first-answer (doall (repeatedly 3 #(ask 20))))]
        (is (every? #{500 503 :dropped} (map deref answers)))
        (is (some #{503 :dropped} (map deref answers)))
        (is (= 200 (first (fetch "status"))) "and it goes on")))))

(deftest closing-waits-for-answers
  (let [answer (promise)]
    (with-server {}
      (fn []
        (let [port *port*]
          (future (binding [*port* port]
                    (deliver answer (try (first (fetch "await-tx?tx-id=9&timeout=400"))
                                         (catch Exception e e)))))
          (wait-until #(pos? (.get ^AtomicLong *in-flight*))))))
    (is (= 500 (deref answer 5000 :none)))))
