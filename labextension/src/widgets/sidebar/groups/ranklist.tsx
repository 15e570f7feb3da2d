/** The ranks of a group, or of one of its nodes, one row each. */
import { stopIcon } from '@jupyterlab/ui-components';
import React from 'react';
import type { GroupMonitor } from '../../../model/groups/monitor';
import { formatBytes, formatPercent, formatSeconds } from '../../../model/format/quantities';
import type { IGroup, IRank, IRankMemory } from '../../../services/protocol';
import { useClock, useSignal } from '../../base/hooks';
import { hueOf } from '../../states/rankcolor';
import { StateGlyph } from '../../states/stateglyph';
import {
  awaitsUserWords,
  cannotBeInterrupted,
  exitReason,
  isPassing,
  messageOf,
  stateWord
} from '../../states/statewords';
import { useSidebar } from '../context';
import { Sparkline } from '../charts/sparkline';

/** Up to this many ranks a row may have a second line. */
const ROOMY = 8;

export interface IRankListProps {
  readonly group: IGroup;
  readonly monitor: GroupMonitor;
  /** Those to show; all, if left out. */
  readonly ranks?: readonly IRank[];
  /** Draw the memory of each rank in its row: not beside a chart of all. */
  readonly hasLines: boolean;
  /** Called with the rank under the pointer or the focus. */
  readonly onPoint: (rank: number | null) => void;
}

export function RankList(props: IRankListProps): React.ReactElement {
  const { group, monitor, hasLines, onPoint, ranks = group.ranks } = props;
  const { clock, trans } = useSidebar();
  useSignal(monitor.memory.changed);
  useSignal(monitor.changed);
  useClock(
    clock,
    ranks.some(rank => isPassing(rank.state))
  );
  const firstWith = new Map(ranks.map(({ message }, i) => [message, i] as const).reverse());
  return (
    <ul
      className="jpd-RankList"
      aria-label={trans.__('Ranks of %1', group.name)}
      onKeyDown={moveFocus}
      onMouseLeave={() => onPoint(null)}
    >
      {ranks.map((rank, i) => (
        <RankRow
          key={rank.rank}
          {...{ group, monitor, rank, hasLines, onPoint }}
          isFirst={i === 0}
          isTold={ranks.length > ROOMY && firstWith.get(rank.message) !== i}
        />
      ))}
    </ul>
  );
}

interface IRankRowProps extends Omit<IRankListProps, 'ranks'> {
  readonly rank: IRank;
  readonly isFirst: boolean;
  /** Whether a row above has the same message: many ranks that wait for the same would fill the sidebar with it. */
  readonly isTold: boolean;
}

function RankRow({ group, monitor, rank, isFirst, isTold, hasLines, onPoint }: IRankRowProps): React.ReactElement {
  const { actions, clock, trans } = useSidebar();
  const memory = monitor.memory.latest(rank.rank);
  const words = activity(monitor, rank, trans) ?? stateWord(trans, rank.state);
  const lasts = isPassing(rank.state) ? formatSeconds(clock.since(rank.state_at)) : '';
  const bytes = rank.state === 'dead' ? '' : formatBytes(memory?.allocated_bytes ?? memory?.resident_bytes);
  return (
    <li
      className="jpd-RankRow"
      data-state={rank.state}
      onMouseEnter={() => onPoint(rank.rank)}
      onFocus={() => onPoint(rank.rank)}
    >
      <button
        type="button"
        className="jpd-RankRow-open"
        tabIndex={isFirst ? 0 : -1}
        title={[trans.__('Open the output of rank %1', rank.rank), messageOf(trans, rank)].filter(Boolean).join('\n')}
        aria-label={trans.__('Rank %1: %2 %3, %4. Open its output.', rank.rank, words, lasts, bytes)}
        onClick={() => actions.openLog(group, rank.rank)}
      >
        <StateGlyph state={rank.state} />
        <span className="jpd-RankRow-rank" data-hue={hueOf(rank.rank)}>
          {rank.rank}
        </span>
        <span className="jpd-RankRow-activity">
          <span className="jpd-RankRow-state">{words}</span>
          <span className="jpd-RankRow-seconds">{lasts}</span>
        </span>
        <span className="jpd-RankRow-memory" title={memoryTitle(memory, trans)}>
          {bytes}
        </span>
        {hasLines && <Sparkline monitor={monitor} rank={rank.rank} />}
      </button>
      <button
        type="button"
        className="jpd-RankRow-interrupt"
        tabIndex={-1}
        disabled={rank.state !== 'busy' && rank.state !== 'unresponsive'}
        title={trans.__('Interrupt rank %1', rank.rank)}
        aria-label={trans.__('Interrupt rank %1', rank.rank)}
        onClick={() => actions.interrupt(group, String(rank.rank))}
      >
        <stopIcon.react tag="span" width="12px" />
      </button>
      <RankDetails {...{ group, rank, memory, isTold }} />
    </li>
  );
}

interface IRankDetailsProps {
  readonly group: IGroup;
  readonly rank: IRank;
  readonly memory: IRankMemory | null;
  readonly isTold: boolean;
}

/** The lines below a rank's row: why it is dead or waits, and details of its memory if there is room. */
function RankDetails({ group, rank, memory, isTold }: IRankDetailsProps): React.ReactElement | null {
  const { actions, trans } = useSidebar();
  if (rank.state === 'dead') {
    return <RankExit rank={rank} />;
  }
  const hasRoom = group.world_size <= ROOMY && memory !== null && memory.allocated_bytes !== null;
  const held = hasRoom
    ? trans.__('reserved %1, peak %2', formatBytes(memory.reserved_bytes), formatBytes(memory.peak_bytes))
    : null;
  const lines = [isTold ? null : messageOf(trans, rank), held].filter(Boolean);
  if (lines.length === 0 && !cannotBeInterrupted(rank)) {
    return null;
  }
  return (
    <div className="jpd-RankRow-detail">
      {lines.join(' - ')}
      {cannotBeInterrupted(rank) && (
        <button
          type="button"
          className="jpd-RankRow-kill"
          title={trans.__('Kill this rank if it cannot be interrupted; the other ranks keep their variables')}
          onClick={() => actions.kill(group, rank.rank)}
        >
          {trans.__('Kill rank %1\u2026', rank.rank)}
        </button>
      )}
    </div>
  );
}

/** Why a rank is dead, and the end of its stderr. */
function RankExit({ rank }: { rank: IRank }): React.ReactElement {
  const { trans } = useSidebar();
  const reason = exitReason(trans, rank);
  if (!rank.exit?.stderr) {
    return <p className="jpd-RankRow-exit">{reason}</p>;
  }
  return (
    <details className="jpd-RankRow-exit">
      <summary>{reason}</summary>
      <pre tabIndex={0} aria-label={trans.__('Last error output of rank %1', rank.rank)}>
        {rank.exit.stderr}
      </pre>
    </details>
  );
}

/** Which cell a busy rank runs: "[7] train.ipynb", "asks for input: [7] train.ipynb". */
function activity(monitor: GroupMonitor, rank: IRank, trans: Trans): string | null {
  if (rank.execution_id === null || rank.state !== 'busy') {
    return null;
  }
  const execution = monitor.execution(rank.execution_id);
  const count = execution?.execution_count ?? '*';
  const cell = `[${count}] ${execution?.notebook?.split('/').pop() ?? trans.__('cell')}`;
  const awaited = awaitsUserWords(trans, rank);
  return awaited ? trans.__('%1: %2', awaited, cell) : cell;
}

type Trans = ReturnType<typeof useSidebar>['trans'];

function memoryTitle(memory: IRankMemory | null, trans: Trans): string {
  if (!memory) {
    return trans.__('No memory sample yet');
  }
  if (memory.allocated_bytes === null) {
    return trans.__(
      'Resident memory of the process: %1; CPU: %2',
      formatBytes(memory.resident_bytes),
      formatPercent(memory.cpu_percent)
    );
  }
  return trans.__(
    'allocated %1, reserved %2, peak %3',
    formatBytes(memory.allocated_bytes),
    formatBytes(memory.reserved_bytes),
    formatBytes(memory.peak_bytes)
  );
}

/** One tab stop for the whole list; up and down move between ranks, right to the rank's interrupt. */
function moveFocus(event: React.KeyboardEvent<HTMLUListElement>): void {
  const list = event.currentTarget;
  const row = (event.target as HTMLElement).closest('.jpd-RankRow');
  if (!row) {
    return;
  }
  const rows = [...list.querySelectorAll('.jpd-RankRow')];
  const at = rows.indexOf(row);
  const targets: Record<string, [number, string]> = {
    ArrowDown: [at + 1, 'open'],
    ArrowUp: [at - 1, 'open'],
    Home: [0, 'open'],
    End: [rows.length - 1, 'open'],
    ArrowRight: [at, 'interrupt'],
    ArrowLeft: [at, 'open']
  };
  const target = targets[event.key];
  if (target) {
    event.preventDefault();
    rows[target[0]]?.querySelector<HTMLElement>(`.jpd-RankRow-${target[1]}`)?.focus();
  }
}
