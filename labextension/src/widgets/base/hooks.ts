/** Hooks that connect React components to models. */
import type { ISignal } from '@lumino/signaling';
import { useEffect, useReducer } from 'react';
import type { IClock } from '../../tokens';

/** Render again when the signal is emitted, at most once per frame. */
export function useSignal<S, A>(signal: ISignal<S, A> | null): void {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    let frame = 0;
    const slot = () => {
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
  }, [signal]);
}

/** Render again with every tick of the clock, while `active`. */
export function useClock(clock: IClock, active: boolean): void {
  useEffect(() => (active ? clock.hold() : undefined), [clock, active]);
  useSignal(active ? clock.ticked : null);
}
