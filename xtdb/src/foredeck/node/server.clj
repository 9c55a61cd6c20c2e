(ns foredeck.node.server
  "The HTTP side, on the JDK's own server: loopback only, a fixed number of threads."
  (:require [clojure.string :as str]
            [clojure.tools.logging :as log]
            [foredeck.node.codec :as codec]
            [foredeck.node.guard :as guard]
            [foredeck.node.handlers :as handlers]
            [foredeck.node.params :as params])
  (:import (com.sun.net.httpserver HttpExchange HttpHandler HttpServer)
           (java.io Closeable IOException)
           (java.net InetAddress InetSocketAddress)
           (java.nio.charset StandardCharsets)
           (java.util.concurrent ArrayBlockingQueue ThreadFactory ThreadPoolExecutor TimeUnit)
           (java.util.concurrent.atomic AtomicLong)))

(set! *warn-on-reflection* true)

(defn- encode [edn? {:keys [body api? entries?]}]
  (cond
    edn?     (codec/write-edn body)
    api?     (codec/write-json (codec/camel-case-keys body))
    entries? (codec/write-json (mapv codec/camel-case-keys body))
    :else    (codec/write-json body)))

(defn- wants-edn? [^HttpExchange exchange]
  (let [accept (or (.getFirst (.getRequestHeaders exchange) "Accept") "")]
    (not (str/includes? accept "json"))))

(defn- send-answer [^HttpExchange exchange {:keys [status] :as answer}]
  (let [edn? (wants-edn? exchange)
        payload (.getBytes ^String (encode edn? answer) StandardCharsets/UTF_8)]
    (doto (.getResponseHeaders exchange)
      (.set "Content-Type" (if edn? "application/edn" "application/json")))
    (.sendResponseHeaders exchange status (alength payload))
    (with-open [out (.getResponseBody exchange)]
      (.write out payload))))

(defn- request [^HttpExchange exchange limit]
  (let [headers (.getRequestHeaders exchange)
        uri (.getRequestURI exchange)]
    {:method       (.getRequestMethod exchange)
     :path         (.getPath uri)
     :content-type (.getFirst headers "Content-Type")
     :body         (guard/read-body exchange limit)
     :params       (delay (params/parse (.getRawQuery uri)))}))

(defn- work [context request]
  (handlers/answer context (update request :params deref)))

(defn- respond
  "The answer to an exchange, after the checks that need no database."
  [{:keys [token limits busy?] :as context} ^HttpExchange exchange]
  (if-not (guard/authorized? token exchange)
    {:status 401 :body {:error "a bearer token is needed, and this is not it"}}
    (let [{:keys [body] :as request} (request exchange (:max-body-size limits))]
      (cond
        (= ::guard/too-large body)
        {:status 413
         :body {:error (str "the request is larger than " (:max-body-size limits) " bytes")}}

        (busy?)
        {:status 503 :body {:error "too many requests are waiting: try again"}}

        :else
        (try
          (work context request)
          (catch xtdb.IllegalArgumentException e
            {:status 400 :body {:error (ex-message e)}}))))))

(defn- handle [{:keys [^AtomicLong in-flight] :as context} ^HttpExchange exchange]
  (.incrementAndGet in-flight)
  (try
    (let [{:keys [cause] :as answer} (respond context exchange)]
      (when cause
        (log/error cause "request failed:" (str (.getRequestURI exchange))))
      (send-answer exchange answer))
    (catch IOException e
      (log/debug "the other side went away:" (ex-message e)))
    (catch Throwable e
      (log/error e "no answer could be given"))
    (finally
      (.close exchange)
      (.decrementAndGet in-flight))))

(defn- thread-factory ^ThreadFactory []
  (let [number (AtomicLong.)]
    (reify ThreadFactory
      (newThread [_ task]
        (Thread. task (str "http-" (.incrementAndGet number)))))))

(defn- executor ^ThreadPoolExecutor [{:keys [threads queue-size]}]
  ;; Requests beyond the queue's size are answered with 503; for that they need a thread, hence
  ;; twice the size. Connections beyond it are dropped unread.
  (ThreadPoolExecutor. (int threads) (int threads) 0 TimeUnit/MILLISECONDS
                       (ArrayBlockingQueue. (* 2 queue-size))
                       (thread-factory)))

(defn- wait-until-idle
  "Wait until no request is being answered, `timeout` milliseconds at most."
  [^AtomicLong in-flight timeout]
  (let [deadline (+ (System/nanoTime) (* 1000000 timeout))]
    (while (and (pos? (.get in-flight)) (< (System/nanoTime) deadline))
      (Thread/sleep 5))))

(defrecord Server [^HttpServer http ^ThreadPoolExecutor executor context port]
  Closeable
  (close [_]
    (let [{:keys [stopping in-flight limits]} context]
      (reset! stopping true)
      (wait-until-idle in-flight (:stop-timeout limits))
      ;; The JDK waits for its whole delay, even if the server is idle.
      (.stop http 0)
      (.shutdown executor))))

(defn start
  "Serve `node`. Options: :limits (the configuration's :http), :token (nil: none is required).
  Returns a closeable map with the :port that it listens on."
  [node {:keys [limits token]}]
  (let [{:keys [port queue-size]} limits
        executor (executor limits)
        queue (.getQueue executor)
        stopping (atom false)
        context {:node           node
                 :limits         limits
                 :token          token
                 :in-flight      (AtomicLong.)
                 :stopping       stopping
                 :busy?          #(or @stopping (< queue-size (.size queue)))}
        http (HttpServer/create (InetSocketAddress. (InetAddress/getLoopbackAddress) (int port))
                                0)]
    (.setExecutor http executor)
    (.createContext http "/" (reify HttpHandler
                               (handle [_ exchange] (handle context exchange))))
    (.start http)
    (->Server http executor context (.getPort (.getAddress http)))))
