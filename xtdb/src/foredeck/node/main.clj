(ns foredeck.node.main
  "Starts a node and serves it until it is stopped.

     java -cp ... foredeck.node.main --config FILE [--data-dir DIR] [--port N]
          [--token-file FILE] [--ready-file FILE] [--until-eof true]

  --ready-file is written once requests are answered: {\"port\": N, \"pid\": N}. With --until-eof
  the node stops when its standard input ends, that is, when the process that started it ends."
  (:require [clojure.java.io :as io]
            [clojure.string :as str]
            [clojure.tools.logging :as log]
            [foredeck.node.codec :as codec]
            [foredeck.node.config :as config]
            [foredeck.node.guard :as guard]
            [foredeck.node.server :as server]
            [xtdb.api :as xt])
  (:import (java.io Closeable File)
           (java.nio.file CopyOption Files StandardCopyOption))
  (:gen-class))

(set! *warn-on-reflection* true)

(def ^:private known #{"config" "data-dir" "port" "token-file" "ready-file" "until-eof"})

(defn parse-args
  "`--name value` pairs as a map. Throws where there is something else."
  [args]
  (into {}
        (map (fn [[option value]]
               (let [k (str/replace option #"^--" "")]
                 (when-not (and (str/starts-with? option "--") (known k) value)
                   (throw (ex-info (str "not understood: " option) {:known known})))
                 [(keyword k) value])))
        (partition-all 2 args)))

(defn- write-ready-file
  "Writes a draft and renames it, so that whoever waits for the file never reads half of it."
  [file port]
  (let [target (io/file file)
        draft (File. (str target ".new"))]
    (spit draft (codec/write-json {:port port :pid (.pid (java.lang.ProcessHandle/current))}))
    (Files/move (.toPath draft) (.toPath target)
                (into-array CopyOption [StandardCopyOption/ATOMIC_MOVE]))))

(defn start
  "A running node with its server: {:port N :close function}. `close` stops both, the server first."
  [{:keys [config data-dir port token-file]}]
  (let [settings (config/load-file config {:data-dir (some-> data-dir io/file)})
        limits (cond-> (:http settings) port (assoc :port (parse-long port)))
        token (some-> token-file guard/read-token)
        node (xt/start-node (config/topology settings))]
    (try
      (let [http (server/start node {:limits limits :token token})]
        {:port  (:port http)
         :close #(do (.close ^Closeable http)
                     (.close ^Closeable node))})
      (catch Throwable e
        (.close ^Closeable node)
        (throw e)))))

(defn- wait-for-the-end [until-eof]
  (when until-eof
    (while (not (neg? (.read System/in))))
    (System/exit 0))
  @(promise))

(defn -main [& args]
  (try
    (let [{:keys [ready-file until-eof] :as options} (parse-args args)
          {:keys [port close]} (start options)]
      (.addShutdownHook (Runtime/getRuntime)
                        (Thread. (fn []
                                   (log/info "stopping")
                                   (close)
                                   (log/info "stopped"))))
      (when ready-file
        (write-ready-file ready-file port))
      (log/info "listening on loopback, port" port)
      (wait-for-the-end until-eof))
    (catch Throwable e
      (log/error e "the node could not be started:" (ex-message e))
      (System/exit 1))))
