import { PromiseDelegate } from '@lumino/coreutils';
import { expect, it } from 'vitest';
import type { IDebugReply } from '../../services/protocol';
import { RankStates } from './rankstates';

/** What a rank that is stopped replies. */
const STOPPED = {
  rank: 0,
  content: { body: { stoppedThreads: [1], stackFrames: [{ line: 2 }] } }
} as unknown as IDebugReply;

it('forgets what it had asked for when it is stopped', async () => {
  const replies: PromiseDelegate<IDebugReply[]>[] = [];
  const ask = (): Promise<IDebugReply[]> => {
    replies.push(new PromiseDelegate());
    return replies[replies.length - 1].promise;
  };
  const states = new RankStates({ ask, ranks: () => [0], isBusy: () => true });
  const answer = async (): Promise<void> => {
    for (const asked of [1, 2]) {
      await expect.poll(() => replies.length).toBe(asked);
      replies[asked - 1].resolve([STOPPED]);
    }
    await replies.splice(0)[1].promise;
  };
  states.start();
  await answer();
  await expect.poll(() => states.stoppedAt(0)?.line).toBe(2);
  states.refresh();
  await expect.poll(() => replies.length).toBe(1);
  states.stop();
  await answer();
  await new Promise(resolve => setTimeout(resolve)); // what the last answer leads to
  expect(states.states).toEqual([]);
  states.dispose();
});
