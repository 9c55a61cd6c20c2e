(ns foredeck.node.config-test
  (:require [clojure.java.io :as io]
            [clojure.test :refer [deftest is testing]]
            [foredeck.node.config :as config]))

(deftest tags
  (let [options {:data-dir (io/file "data") :getenv {"SET" "value" "BLANK" ""}}
        value #(get-in (config/parse (str "{:xtdb {:x " % "}}") options) [:xtdb :x])]
    (is (= (str (io/file "data" "index")) (value "#foredeck/path \"index\"")))
    (is (= "value" (value "#foredeck/env [\"SET\" \"other\"]")))
    (is (= "other" (value "#foredeck/env [\"UNSET\" \"other\"]")))
    (is (= "other" (value "#foredeck/env [\"BLANK\" \"other\"]")))
    (is (thrown-with-msg? Exception #"UNSET" (value "#foredeck/env \"UNSET\"")))))

(deftest mistakes-are-named
  (is (thrown-with-msg? Exception #"data folder"
                        (config/parse "{:xtdb {:x #foredeck/path \"x\"}}" {})))
  (is (thrown-with-msg? Exception #":prot" (config/parse "{:http {:prot 1}}" {})))
  (is (thrown-with-msg? Exception #"not a map" (config/parse "[]" {}))))

(deftest limits-have-defaults
  (is (= (assoc config/defaults :threads 3) (:http (config/parse "{:http {:threads 3}}" {})))))

(deftest modules-beside-the-topology-are-part-of-it
  (is (= {:a 1 :b 2} (config/topology (config/parse "{:http {} :a 1 :xtdb {:b 2}}" {})))))

(deftest the-files-that-are-shipped-can-be-read
  (doseq [file (.listFiles (io/file "config"))]
    (testing (str file)
      (is (map? (config/topology (config/load-file file {:data-dir (io/file "data")
                                                         :getenv {}})))))))
