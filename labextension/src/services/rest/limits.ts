/** Time limits for answers of the server: a proxy may accept a request and never answer it, and browsers wait forever. */
import { translation } from '../translation';
import { DistError } from '../errors';
import { unreachable } from './answers';

/** When time is up, an answer that waits in the browser is taken first: timers of sleeping and frozen pages are late. */
const LATE_MS = 1000;

/**
 * Wait for an answer at most this long. `ask` gets a signal that is aborted when time is up. Rejects with a DistError
 * then, and if there is no answer.
 */
export async function limited<T>(seconds: number, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = (): void => {
      const message = translation().__('The Jupyter server did not answer within %1 s.', seconds);
      reject(new DistError(unreachable(message)));
      controller.abort();
    };
    timer = setTimeout(() => {
      timer = setTimeout(giveUp, LATE_MS);
    }, seconds * 1000);
  });
  try {
    return await Promise.race([ask(controller.signal).catch(failed), late]);
  } finally {
    clearTimeout(timer);
  }
}

function failed(reason: unknown): never {
  if (reason instanceof DistError) {
    throw reason;
  }
  throw new DistError(unreachable(translation().__('The Jupyter server did not answer.')));
}
