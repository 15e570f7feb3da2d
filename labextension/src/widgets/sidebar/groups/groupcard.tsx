/** A group: its description, state, actions and ranks. */
import { caretDownIcon, caretRightIcon, ellipsesIcon, LabIcon, refreshIcon, stopIcon } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';
import { noteLines, remedy } from '../../../model/groups/groups';
import { formatBytes } from '../../../model/format/quantities';
import { formatRanks } from '../../../model/format/ranks';
import { isStarting } from '../../../model/format/states';
import type { GroupMonitor } from '../../../model/groups/monitor';
import type { IGroup } from '../../../services/protocol';
import { ErrorNote } from '../../base/errornote';
import { useClock, useSignal } from '../../base/hooks';
import { StateGlyph } from '../../states/stateglyph';
import { groupLight, stateWord, groupSummary } from '../../states/statewords';
import { AllocationNote } from './allocation';
import { useSidebar } from '../context';
import { MemoryChart } from '../charts/memorychart';
import { NodeList, SpareNodes } from './nodelist';
import { isByNode, NodeRanks } from './noderanks';
import { RankList } from './ranklist';

/** At most this many waiting cells are listed. */
const MAX_WAITING = 3;

export interface IGroupCardProps {
  readonly group: IGroup;
  readonly charts: boolean;
}

export function GroupCard({ group, charts }: IGroupCardProps): React.ReactElement {
  const { monitors, trans } = useSidebar();
  const [isOpen, setOpen] = useState(true);
  const [pointed, setPointed] = useState<number | null>(null);
  const monitor = monitors.of(group);
  useEffect(() => {
    const watching = monitor.watch();
    return () => watching.dispose();
  }, [monitor]);
  const Ranks = isByNode(group) ? NodeRanks : RankList;
  return (
    <section className="jpd-Group" data-state={group.state} aria-label={trans.__('Group %1', group.name)}>
      <GroupHeader group={group} isOpen={isOpen} onToggle={() => setOpen(!isOpen)} />
      <AllocationNote group={group} />
      <GroupNote group={group} />
      {group.error && <ErrorNote error={group.error} />}
      {isOpen && (
        <>
          <GroupFacts group={group} monitor={monitor} />
          {!isByNode(group) && <NodeList nodes={group.nodes ?? []} trans={trans} />}
          <SpareNodes nodes={group.spare_nodes ?? []} trans={trans} />
          {charts && <MemoryChart monitor={monitor} worldSize={group.world_size} pointed={pointed} />}
          <Ranks group={group} monitor={monitor} hasLines={!charts} onPoint={setPointed} />
          <Waiting group={group} monitor={monitor} />
        </>
      )}
    </section>
  );
}

/** The group's note, and a button for repairs. */
function GroupNote({ group }: { group: IGroup }): React.ReactElement | null {
  const { actions, trans } = useSidebar();
  const way = remedy(group);
  const lines = noteLines(group);
  const repairs = actions.repairs(group).filter(({ standsAlone }) => standsAlone || way !== 'replace');
  if (lines.length === 0 && !way && !repairs.some(({ standsAlone }) => standsAlone)) {
    return null;
  }
  const hasLost = group.ranks.some(rank => rank.process_group === 'lost');
  const labels = {
    replace: hasLost ? trans.__('Replace ranks without device\u2026') : trans.__('Replace dead ranks\u2026'),
    reform: trans.__('Re-create process group'),
    startAgain: trans.__('Start again')
  };
  const titles = {
    replace: trans.__('Start new processes for dead ranks; the other ranks keep their variables'),
    reform: trans.__('All ranks join a new process group; all variables are kept'),
    startAgain: trans.__('Start another group with the same name and options')
  };
  return (
    <div className="jpd-Group-note" role="status" data-remedy={way}>
      {lines.map(line => (
        <p key={line}>{line}</p>
      ))}
      {way && (
        <button type="button" title={titles[way]} onClick={() => actions[way](group)}>
          {labels[way]}
        </button>
      )}
      {repairs.map(({ label, title, run }) => (
        <button key={label} type="button" title={title} onClick={run}>
          {label}
        </button>
      ))}
    </div>
  );
}

interface IGroupHeaderProps {
  readonly group: IGroup;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function GroupHeader({ group, isOpen, onToggle }: IGroupHeaderProps): React.ReactElement {
  const { clock, trans } = useSidebar();
  const starts = isStarting(group);
  useClock(clock, starts);
  const since = Math.max(...group.ranks.map(rank => rank.state_at), group.started_at ?? 0);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <header className="jpd-Group-header">
      <button type="button" className="jpd-Group-toggle" aria-expanded={isOpen} onClick={onToggle}>
        <Caret.react tag="span" width="14px" />
        <StateGlyph state={groupLight(group)} />
        <span className="jpd-Group-name">{group.name}</span>
        <span className="jpd-Group-summary" data-state={group.state} title={stateWord(trans, group.state)}>
          {groupSummary(trans, group, clock.since(starts ? since : group.started_at))}
        </span>
      </button>
      <GroupButtons group={group} />
    </header>
  );
}

function GroupButtons({ group }: { group: IGroup }): React.ReactElement {
  const { actions, trans } = useSidebar();
  const gone = group.state === 'dead' || group.state === 'lost';
  const unreachable = group.state === 'unresponsive' || group.state === 'incompatible';
  const ending = gone || unreachable || group.state === 'ending';
  const working = group.running.length > 0 || group.ranks.some(r => r.state === 'busy' || r.state === 'unresponsive');
  return (
    <div className="jpd-Group-buttons" role="toolbar" aria-label={trans.__('Actions on %1', group.name)}>
      <IconButton
        icon={stopIcon}
        label={trans.__('Interrupt all ranks of %1', group.name)}
        disabled={ending || !working}
        onClick={() => actions.interrupt(group)}
      />
      <IconButton
        icon={refreshIcon}
        label={trans.__('Restart the ranks of %1', group.name)}
        disabled={ending && group.state !== 'dead'}
        onClick={() => actions.restart(group)}
      />
      <IconButton
        icon={ellipsesIcon}
        label={trans.__('More actions on %1', group.name)}
        hasMenu
        onClick={event => actions.openMenu(group, event.currentTarget)}
      />
    </div>
  );
}

interface IIconButtonProps {
  readonly icon: LabIcon;
  readonly label: string;
  readonly disabled?: boolean;
  /** It opens a menu. */
  readonly hasMenu?: boolean;
  readonly onClick: (event: React.MouseEvent<HTMLButtonElement>) => void;
}

export function IconButton({ icon, label, disabled, hasMenu, onClick }: IIconButtonProps): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-IconButton"
      title={label}
      aria-label={label}
      aria-haspopup={hasMenu ? 'menu' : undefined}
      disabled={disabled}
      onClick={onClick}
    >
      <icon.react tag="span" width="14px" />
    </button>
  );
}

function GroupFacts({ group, monitor }: { group: IGroup; monitor: GroupMonitor }): React.ReactElement {
  const { trans } = useSidebar();
  useSignal(monitor.memory.changed);
  const { environment } = group;
  const torch = environment.torch_version ? `torch ${environment.torch_version}` : '';
  const where =
    group.devices.length > 0
      ? trans.__('%1 %2', group.accelerator.toUpperCase(), formatRanks(group.devices))
      : trans.__('CPU');
  const facts = [environment.display_name, torch, group.backend, where, total(group, monitor)];
  const ready = group.ready_seconds === null ? '' : trans.__('Ready after %1 s.', group.ready_seconds.toFixed(2));
  return (
    <p className="jpd-Group-facts" title={[ready, environment.python, group.cwd].filter(Boolean).join('\n')}>
      {facts.filter(Boolean).map((fact, i) => (
        <span key={i}>{fact}</span>
      ))}
    </p>
  );
}

/** The cells that wait for their ranks, in order, with their notebook and author. */
function Waiting({ group, monitor }: { group: IGroup; monitor: GroupMonitor }): React.ReactElement | null {
  const { trans } = useSidebar();
  useSignal(monitor.changed);
  const cells = group.queued.flatMap(id => monitor.execution(id) ?? []);
  if (cells.length === 0) {
    return null;
  }
  const names = cells.map(cell => cell.notebook?.split('/').pop() ?? trans.__('cell'));
  const each = [...new Set(names)].map(name => ({ name, count: names.filter(other => other === name).length }));
  const shown = each.slice(0, MAX_WAITING).map(({ name, count }) => (count > 1 ? `${name} (${count})` : name));
  if (each.length > MAX_WAITING) {
    shown.push(trans._n('%1 more', '%1 more', each.length - MAX_WAITING));
  }
  const whole = cells.map(({ notebook, ranks, owner }) =>
    [notebook ?? trans.__('cell'), trans.__('ranks %1', ranks), owner].filter(Boolean).join(' \u00b7 ')
  );
  return (
    <p className="jpd-Group-facts" title={whole.join('\n')}>
      {trans.__('Waiting: %1', shown.join(', '))}
    </p>
  );
}

/** The memory of all ranks together. */
function total(group: IGroup, monitor: GroupMonitor): string {
  const { memory } = monitor;
  const living = group.ranks.filter(rank => rank.state !== 'dead');
  if (memory.size === 0 || living.length === 0) {
    return '';
  }
  const values = living.map(rank => memory.latest(rank.rank)?.[memory.metric] ?? 0);
  return `\u03a3 ${formatBytes(values.reduce((a, b) => a + b, 0))}`;
}
