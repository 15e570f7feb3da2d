/** Hooks that connect React components to models and to the server. */
import type { ISignal } from '@lumino/signaling';
import { useCallback, useEffect, useReducer, useRef, useState, useSyncExternalStore } from 'react';
import { errorOf, isLasting } from '../../services/errors';
import type { IErrorBody } from '../../services/protocol';
import type { IClock } from '../../tokens';

/** The emissions of each signal that a component has rendered for. */
const counts = new WeakMap<object, { emissions: number }>();

function countOf<S, A>(signal: ISignal<S, A>): { emissions: number } {
  let count = counts.get(signal);
  if (!count) {
    const counted = (count = { emissions: 0 });
    counts.set(signal, counted);
    signal.connect(() => (counted.emissions += 1));
  }
  return count;
}

/**
 * Render again when the signal is emitted, at most once per frame. A component is connected only after it was painted:
 * React compares the counts, so that an emission between rendering and connecting is not lost.
 */
export function useSignal<S, A>(signal: ISignal<S, A> | null): void {
  const subscribe = useCallback(
    (again: () => void) => {
      let frame = 0;
      const slot = (): void => {
        frame =
          frame ||
          requestAnimationFrame(() => {
            frame = 0;
            again();
          });
      };
      signal?.connect(slot);
      return () => {
        cancelAnimationFrame(frame);
        signal?.disconnect(slot);
      };
    },
    [signal]
  );
  useSyncExternalStore(subscribe, () => (signal ? countOf(signal).emissions : 0));
}

/** Render again with every tick of the clock, while `active`. */
export function useClock(clock: IClock, active: boolean): void {
  useEffect(() => (active ? clock.hold() : undefined), [clock, active]);
  useSignal(active ? clock.ticked : null);
}

/** After a failure the server is asked again; each failure doubles the pause. */
export const AGAIN_MS = 2000;
const MAX_AGAIN_MS = 30000;

/** The answer, or why there is none yet; both null: the server was asked and has not answered. */
export interface IAsked<T> {
  readonly answer: T | null;
  readonly error: IErrorBody | null;
  /** Ask again now. */
  readonly again: () => void;
}

/** Ask the server once it is shown, and after a failure again until there is an answer. */
export function useAsked<T>(ask: () => Promise<T>): IAsked<T> {
  const [asked, setAsked] = useState<Omit<IAsked<T>, 'again'>>({ answer: null, error: null });
  const [tries, again] = useReducer((n: number) => n + 1, 0);
  const asking = useRef(ask);
  useEffect(() => {
    let isMounted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const failed = (reason: unknown): void => {
      if (isMounted) {
        const error = errorOf(reason);
        setAsked({ answer: null, error });
        timer = isLasting(error) ? undefined : setTimeout(again, Math.min(AGAIN_MS * 2 ** tries, MAX_AGAIN_MS));
        window.addEventListener('online', again);
      }
    };
    asking.current().then(answer => isMounted && setAsked({ answer, error: null }), failed);
    return () => {
      isMounted = false;
      clearTimeout(timer);
      window.removeEventListener('online', again);
    };
  }, [tries]);
  return { ...asked, again };
}
