(ns juxt.clojars-mirrors.nippy.v3v1v1.taoensso.nippy
  "What xtdb-kafka 1.24.3 (there is no newer one) calls by this name, which xtdb-core 1.24.5 has
  under another: the same two functions of the same library."
  (:require [juxt.clojars.mirrors.nippy.v3v4v2.taoensso.nippy :as nippy]))

(def fast-freeze nippy/fast-freeze)
(def fast-thaw nippy/fast-thaw)
