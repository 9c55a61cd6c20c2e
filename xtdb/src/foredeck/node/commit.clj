(ns foredeck.node.commit
  "A transaction function that orders a commit while its transaction is indexed.

  A document, the clock, orders the transactions of a store. A commit that matches the clock it was
  planned on fails when another one was faster, so with many writers most commits fail. This
  function reads and advances the clock during indexing, where nobody can come in between. It
  writes exactly what a commit that matches the clock writes, so both kinds can be mixed. A
  transaction copied from another store brings its own time (`at`). It is refused if any of its
  documents has a version that is not older; if it is not later than every transaction before it,
  its versions are marked as irregular.

  Invoked as [\"fn\" \"foredeck/commit/2\" {...}], see foredeck's stamping.py. The id ends in the
  number of its version: what it does must never differ between two nodes."
  (:require [xtdb.api :as xt]))

(def id "foredeck/commit/2")

(def document
  "The function as every node of a cluster must have it: a form that depends on nothing here."
  {:xt/id id
   :xt/fn
   '(fn [ctx {:keys [namespace now at unless expect record puts]}]
      (let [db (xtdb.api/db ctx)
            attribute (fn [k] (keyword namespace k))
            entity (fn [eid] (xtdb.api/entity db eid))
            field (fn [doc k] (get doc (attribute k)))
            clock (entity (str namespace "/clock"))
            there (mapv (fn [doc] (entity (:xt/id doc))) puts)
            same? (fn [before doc k] (= (field before k) (field doc k)))]
        (if-not (and clock
                     (not-any? entity unless)
                     (every? (fn [{:keys [eid token]}] (= token (field (entity eid) "token")))
                             expect)
                     (every? (fn [[before doc]]
                               (or (nil? before)
                                   (and (same? before doc "kind")
                                        (same? before doc "identity")
                                        (or (nil? at) (< (field before "time") at)))))
                             (map vector there puts)))
          false
          (let [seq-number (inc (field clock "clock_seq"))
                revision (inc (field clock "clock_revision"))
                latest (field clock "clock_time")
              time (or at (max now (inc latest)))
                token (field record "tx_token")
                valid-time (java.util.Date. (long revision))
                stamped (map-indexed
                         (fn [n [before doc]]
                           (assoc doc
                                  (attribute "time") time
                                  (attribute "born") (if before
                                                       (field before "born")
                                                       (+ (* seq-number 1048576) n))
                                  (attribute "irregular") (or (<= time latest)
                                                              (true? (field before "irregular")))))
                         (map vector there puts))
                recorded (assoc record
                                (attribute "tx_time") time
                                (attribute "tx_seq") seq-number)
                moved (assoc clock
                             (attribute "clock_seq") seq-number
                             (attribute "clock_time") (max time latest)
                             (attribute "clock_token") token
                             (attribute "clock_revision") revision)]
            (mapv (fn [doc] [:xtdb.api/put doc valid-time])
                  (concat stamped [recorded moved]))))))})

(defn ensure-known
  "Make sure that the log holds the function before a transaction that invokes it. Nodes that do
  so at the same time write the same document."
  [node]
  (when (not= document (xt/entity (xt/db node) id))
    (xt/submit-tx node [[::xt/put document]])))
