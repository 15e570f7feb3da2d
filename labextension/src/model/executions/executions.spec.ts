import { DisposableDelegate } from '@lumino/disposable';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ITopicHandler, ITopicSubscription } from '../../services/channel/topics';
import type { ExecutionState, IExecution, Topic, TopicMessage } from '../../services/protocol';
import { ExecutionsModel } from './executions';

/** The channel as far as the model sees it: the test plays the server's messages. */
class Wire {
  subscribe(_: Topic, handler: ITopicHandler): ITopicSubscription {
    this.handlers.add(handler);
    const subscription = new DisposableDelegate(() => this.handlers.delete(handler));
    return Object.assign(subscription, {
      resubscribe: () => this.asked.push(handler.since!())
    }) as ITopicSubscription;
  }
  submit = async (): Promise<IExecution> => execution('queued');
  cancel = async (): Promise<IExecution> => execution('aborted');
  send(message: TopicMessage): void {
    this.handlers.forEach(handler => handler.receive(message));
  }
  view(since: number, seq: number, text: string): void {
    const output = { output_type: 'stream', name: 'stdout', text };
    const items = [{ id: seq, seq, ranks: '0', after: null, output }];
    this.send({ type: 'view', group: 'g', execution_id: 'e', since, seq, items, removed: [] });
  }
  state(state: ExecutionState): void {
    this.send({ type: 'execution', group: 'g', execution: execution(state) });
  }
  readonly asked: number[] = [];
  readonly handlers = new Set<ITopicHandler>();
}

function execution(state: ExecutionState): IExecution {
  return {
    id: 'e',
    group: 'g',
    ranks: '0',
    state,
    cell_id: null,
    notebook: null,
    owner: null,
    execution_count: 1,
    queued_at: 0,
    started_at: 0,
    ended_at: null,
    statuses: [],
    rank_seconds: {},
    silent: false,
    error: null
  };
}

describe('ExecutionsModel', () => {
  let wire: Wire;
  let model: ExecutionsModel;

  beforeEach(() => {
    wire = new Wire();
    model = new ExecutionsModel(wire);
  });

  it('shares one subscription, and ends it with the last follower', () => {
    const first = model.follow('g', 'e');
    const second = model.follow('g', 'e');
    expect(first.followed).toBe(second.followed);
    expect(wire.handlers.size).toBe(1);
    first.dispose();
    first.dispose();
    expect(model.find('e')).toBe(second.followed);
    second.dispose();
    expect(model.find('e')).toBeNull();
    expect(wire.handlers.size).toBe(0);
  });

  it('ends when the state is final, with all items', async () => {
    const { followed } = model.follow('g', 'e');
    wire.state('running');
    expect(followed.isEnded).toBe(false);
    wire.view(0, 3, 'a');
    wire.state('ok');
    await followed.ended;
    expect(followed.items).toHaveLength(1);
    expect(followed.execution?.state).toBe('ok');
  });

  it('requests everything again after a gap', () => {
    const { followed } = model.follow('g', 'e');
    wire.view(0, 3, 'a');
    wire.view(5, 7, 'b');
    expect(wire.asked).toEqual([0]);
    wire.view(0, 8, 'all');
    expect(followed.items[0].output?.text).toBe('all');
  });

  it('does not end before the requested view has arrived', async () => {
    const { followed } = model.follow('g', 'e');
    wire.view(0, 3, 'a');
    wire.view(5, 7, 'b');
    wire.state('ok');
    expect(followed.isEnded).toBe(false);
    expect(followed.items).toHaveLength(1);
    wire.view(0, 8, 'all');
    await followed.ended;
    expect(followed.items[0].output?.text).toBe('all');
  });

  it('gives up on a server that never makes sense', async () => {
    const { followed } = model.follow('g', 'e');
    wire.view(0, 3, 'a');
    for (let i = 0; i < 6; i++) {
      wire.view(50, 60 + i, 'b');
    }
    await followed.ended;
    expect(followed.error?.code).toBe('bad_response');
  });

  it.each(['timed_out', 'agent_unreachable'])('does not end after %s, which passes, and misses nothing', async code => {
    const { followed } = model.follow('g', 'e');
    wire.state('running');
    wire.view(0, 3, 'a');
    wire.send({ type: 'error', error: { code, message: 'Busy.', hint: '' }, request: {} });
    expect(followed.isEnded).toBe(false);
    expect([...wire.handlers].map(handler => handler.since!())).toEqual([3]); // from here the channel asks again
    wire.view(3, 5, 'b');
    wire.state('ok');
    await followed.ended;
    expect([followed.error, followed.items.length]).toEqual([null, 2]);
  });

  describe('while the server does not answer', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    it('asks again until it does', async () => {
      const { followed } = model.follow('g', 'e');
      await vi.advanceTimersByTimeAsync(21000);
      expect(wire.asked).toEqual([0, 0]);
      wire.state('running');
      await vi.advanceTimersByTimeAsync(60000);
      expect([wire.asked.length, followed.isEnded]).toEqual([2, false]);
    });

    it('asks no more when nobody follows', async () => {
      model.follow('g', 'e').dispose();
      await vi.advanceTimersByTimeAsync(60000);
      expect(wire.asked).toEqual([]);
    });
  });

  it.each(['unknown_execution', 'internal'])('ends with the error %s, and is not asked for again', async code => {
    const { followed } = model.follow('g', 'e');
    const error = { code, message: 'No.', hint: '' };
    wire.send({ type: 'error', error, request: {} });
    await followed.ended;
    expect([followed.error, wire.handlers.size]).toEqual([error, 0]);
  });
});
