(ns foredeck.node.build
  "Compiles the node ahead of time: it then starts in a second instead of four.

     java -cp JARS:src clojure.main -m foredeck.node.build CLASSES

  XTDB loads its modules by name when a node starts, so they are compiled here by name. None of
  them may be loaded earlier: a namespace that is loaded already is not compiled again, and its
  protocols would be missing from the output.")

(def namespaces
  "Compiled in this order, each with everything that it requires."
  '[foredeck.node.main
    xtdb.rocksdb
    xtdb.kv.document-store
    xtdb.kv.tx-log
    xtdb.kv.index-store
    xtdb.query
    xtdb.jdbc
    xtdb.jdbc.psql
    foredeck.node.postgres
    xtdb.kafka])

(defn -main [classes]
  (binding [*compile-path* classes]
    (run! compile namespaces))
  (shutdown-agents))
