/** Waiting with a limit. */

import { AbortedError, DeadlineError, type RequestOptions } from "./wire.ts";

/** Resolves after a while; does not keep the process alive. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

/**
 * The promise's own result, if it comes in time.
 * @throws DeadlineError, AbortedError, or what the promise rejects with.
 */
export function within<T>(promise: Promise<T>, options: RequestOptions): Promise<T> {
  const { deadlineMs, signal, holdsProcess = true } = options;
  return new Promise((resolve, reject) => {
    const onAbort = () => settle(() => reject(new AbortedError("aborted")));
    const onTime = () => settle(() => reject(new DeadlineError(`not in ${deadlineMs} ms`)));
    const timer = setTimeout(onTime, Math.max(0, deadlineMs));
    if (!holdsProcess) timer.unref();
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      finish();
    };
    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    promise.then(
      (value) => settle(() => resolve(value)),
      (error) => settle(() => reject(error)),
    );
  });
}
