import { PromiseDelegate } from '@lumino/coreutils';
import { beforeEach, describe, expect, it } from 'vitest';
import { CellAborted, CellQueue, CellUnfinished } from './queue';

/** A cell whose submission and end the test decides. */
class Cell {
  constructor(
    readonly name: string,
    readonly lane: string,
    private _log: string[],
    readonly mayFail = false
  ) {}

  async run(submitted: () => void): Promise<boolean> {
    this._log.push(this.name);
    await this.queued.promise;
    submitted();
    return this.done.promise;
  }

  readonly queued = new PromiseDelegate<void>();
  readonly done = new PromiseDelegate<boolean>();
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    await Promise.resolve();
  }
}

describe('CellQueue', () => {
  let queue: CellQueue;
  let log: string[];
  let cells: Cell[];
  let results: Promise<unknown>[];

  function enqueue(...lanes: string[]): void {
    cells = lanes.map((lane, i) => new Cell(`${lane}${i}`, lane, log));
    results = cells.map(cell => queue.enqueue(cell).catch(e => e));
  }

  beforeEach(() => {
    queue = new CellQueue();
    log = [];
  });

  it('starts the first cell within the call', () => {
    enqueue('kernel');
    expect(log).toEqual(['kernel0']);
  });

  it('starts a second cell within the call when the first was submitted', () => {
    enqueue('kernel');
    const second = new Cell('second', 'kernel', log);
    void queue.enqueue({ ...second, lane: 'other', run: async () => true });
    expect(log).toEqual(['kernel0']);
    queue = new CellQueue();
    const now = {
      lane: 'k',
      mayFail: false,
      run: (submitted: () => void) => {
        submitted();
        log.push('now');
        return new Promise<boolean>(() => undefined);
      }
    };
    void queue.enqueue(now);
    void queue.enqueue(now);
    expect(log).toEqual(['kernel0', 'now', 'now']);
  });

  it('submits cells of one lane one after the other, without waiting for their end', async () => {
    enqueue('g', 'g', 'g');
    await settle();
    expect(log).toEqual(['g0']);
    cells[0].queued.resolve();
    await settle();
    expect(log).toEqual(['g0', 'g1']);
    cells[1].queued.resolve();
    await settle();
    expect(log).toEqual(['g0', 'g1', 'g2']);
  });

  it('waits for the end of all before when the lane changes', async () => {
    enqueue('k', 'g', 'g', 'k');
    cells.forEach(cell => cell.queued.resolve());
    await settle();
    expect(log).toEqual(['k0']);
    cells[0].done.resolve(true);
    await settle();
    expect(log).toEqual(['k0', 'g1', 'g2']);
    cells[2].done.resolve(true);
    await settle();
    expect(log).toEqual(['k0', 'g1', 'g2']);
    cells[1].done.resolve(true);
    await settle();
    expect(log).toEqual(['k0', 'g1', 'g2', 'k3']);
    cells[3].done.resolve(true);
    await Promise.all(results);
    expect(queue.isEmpty).toBe(true);
  });

  it('aborts the cells after a failure, and runs later ones', async () => {
    enqueue('k', 'g', 'k');
    cells[0].queued.resolve();
    cells[0].done.reject(new Error('failed'));
    const outcomes = await Promise.all(results);
    expect(outcomes[1]).toBeInstanceOf(CellAborted);
    expect(outcomes[2]).toBeInstanceOf(CellAborted);
    expect(log).toEqual(['k0']);
    enqueue('g');
    expect(log).toEqual(['k0', 'g0']);
  });

  it('does not submit the next cell of a lane when the submission failed', async () => {
    enqueue('g', 'g');
    cells[0].queued.reject(new Error('refused'));
    const outcomes = await Promise.all(results);
    expect(outcomes[1]).toBeInstanceOf(CellAborted);
    expect(log).toEqual(['g0']);
  });

  it('continues after a cell that may fail', async () => {
    const first = new Cell('first', 'k', log, true);
    const second = new Cell('second', 'g', log);
    const failed = queue.enqueue(first).catch(e => e);
    const ran = queue.enqueue(second);
    first.queued.resolve();
    first.done.reject(new Error('as expected'));
    second.queued.resolve();
    second.done.resolve(true);
    expect(await failed).toBeInstanceOf(Error);
    expect(await ran).toBe(true);
  });

  it('aborts what waits when told, not what runs', async () => {
    enqueue('k', 'g');
    queue.abortWaiting();
    expect(await results[1]).toBeInstanceOf(CellAborted);
    cells[0].queued.resolve();
    cells[0].done.resolve(true);
    expect(await results[0]).toBe(true);
    expect(log).toEqual(['k0']);
  });

  it('runs a cell after what still runs, also if what waited was aborted just before', async () => {
    enqueue('k', 'g');
    const [running] = cells;
    queue.abortWaiting();
    const next = new Cell('next', 'g', log);
    void queue.enqueue(next);
    await settle();
    expect(log).toEqual(['k0']);
    running.queued.resolve();
    running.done.resolve(true);
    await settle();
    expect(log).toEqual(['k0', 'next']);
  });

  it('aborts the cells after one that did not run to its end, also if it may fail', async () => {
    const first = new Cell('first', 'k', log, true);
    const second = new Cell('second', 'g', log);
    const outcomes = [first, second].map(cell => queue.enqueue(cell).catch(e => e));
    first.queued.resolve();
    first.done.reject(new CellUnfinished(false));
    expect(await outcomes[0]).toBeInstanceOf(CellUnfinished);
    expect(await outcomes[1]).toBeInstanceOf(CellAborted);
    expect(log).toEqual(['first']);
  });
});
