/** Hooks that connect React components to models. */
import type { ISignal } from '@lumino/signaling';
import { useCallback, useEffect, useSyncExternalStore } from 'react';
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
