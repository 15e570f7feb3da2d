/** The nodes of a group with many ranks: a row each, with its ranks below it when it is open. */
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import React, { useState } from 'react';
import { expandRanks } from '../../../model/format/ranks';
import { formatBytes } from '../../../model/format/quantities';
import { findNodes } from '../../../model/groups/nodes';
import type { IGroup, INode, IRank, RankState } from '../../../services/protocol';
import { useSignal } from '../../base/hooks';
import { countStates, StateBar } from '../../states/statebar';
import { messageOf, stateWord } from '../../states/statewords';
import { useSidebar } from '../context';
import { devicesText, stateWords } from './nodelist';
import { IRankListProps, RankList } from './ranklist';

/** Above this many ranks, the ranks of a node are shown when it is opened. */
const MAX_OPEN = 16;

/** At most this many nodes are listed; others are found by their name. */
const MAX_LISTED = 128;

/** A field to find nodes is there for more than these. */
const MANY_NODES = 8;

/** Whether the ranks of a group are shown by node. */
export function isByNode(group: IGroup): boolean {
  return group.world_size > MAX_OPEN && (group.nodes?.length ?? 0) > 1;
}

export function NodeRanks(props: IRankListProps): React.ReactElement {
  const { group } = props;
  const { trans } = useSidebar();
  const [query, setQuery] = useState('');
  const [state, setState] = useState<RankState | null>(null);
  const counts = countStates(group.ranks);
  const isShown = (node: INode): boolean => state === null || ranksOf(group, node).some(rank => rank.state === state);
  const found = findNodes(group.nodes ?? [], query).filter(isShown);
  return (
    <div className="jpd-NodeRanks">
      <StateFilter counts={counts} chosen={state} onChoose={setState} />
      {(group.nodes?.length ?? 0) > MANY_NODES && (
        <input
          type="search"
          className="jpd-NodeRanks-search"
          placeholder={trans.__('Find a node or rank')}
          aria-label={trans.__('Find a node or rank')}
          value={query}
          onChange={event => setQuery(event.target.value)}
        />
      )}
      <ul className="jpd-NodeRanks-list" aria-label={trans.__('Nodes of %1', group.name)}>
        {found.slice(0, MAX_LISTED).map(node => (
          <NodeRow key={node.node} {...props} node={node} />
        ))}
      </ul>
      {found.length > MAX_LISTED && (
        <p className="jpd-Hint" role="status">
          {trans.__('%1 of %2 nodes are listed', MAX_LISTED, found.length)}
        </p>
      )}
    </div>
  );
}

interface IStateFilterProps {
  readonly counts: readonly (readonly [RankState, number])[];
  readonly chosen: RankState | null;
  readonly onChoose: (state: RankState | null) => void;
}

/** A button for each state that ranks are in: it shows only nodes with such ranks. */
function StateFilter({ counts, chosen, onChoose }: IStateFilterProps): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <div className="jpd-NodeRanks-states" role="group" aria-label={trans.__('Show nodes by the state of their ranks')}>
      <StateBar counts={counts} trans={trans} />
      {(counts.length > 1 || chosen !== null) &&
        counts.map(([state, count]) => (
          <button
            key={state}
            type="button"
            data-state={state}
            aria-pressed={state === chosen}
            title={trans.__('Show only nodes with ranks in this state: %1', stateWord(trans, state))}
            onClick={() => onChoose(state === chosen ? null : state)}
          >
            {trans.__('%1 %2', count, stateWord(trans, state))}
          </button>
        ))}
    </div>
  );
}

function NodeRow({ node, ...props }: IRankListProps & { node: INode }): React.ReactElement {
  const { group, monitor } = props;
  const { trans } = useSidebar();
  const [isOpen, setOpen] = useState(false);
  const ranks = ranksOf(group, node);
  const words = stateWords(trans);
  const devices = devicesText(node.devices ?? [], trans);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <li className="jpd-NodeRow" data-state={node.state}>
      <button
        type="button"
        className="jpd-NodeRow-toggle"
        aria-expanded={isOpen}
        title={messageOf(trans, node) || trans.__('Ranks %1', node.ranks)}
        onClick={() => setOpen(!isOpen)}
      >
        <Caret.react tag="span" width="12px" />
        <span className="jpd-NodeRow-name">{trans.__('node:%1', node.node)}</span>
        <span className="jpd-NodeRow-host">{node.host}</span>
        {words[node.state] && <strong>{words[node.state]}</strong>}
        <NodeMemory monitor={monitor} ranks={ranks} />
        <StateBar counts={countStates(ranks)} trans={trans} />
      </button>
      {isOpen && devices && <p className="jpd-Hint">{devices}</p>}
      {isOpen && <RankList {...props} ranks={ranks} />}
    </li>
  );
}

/** The memory of a node's ranks together. */
function NodeMemory({
  monitor,
  ranks
}: Pick<IRankListProps, 'monitor'> & { ranks: readonly IRank[] }): React.ReactElement {
  const { memory } = monitor;
  useSignal(memory.changed);
  const bytes = ranks.reduce((sum, { rank }) => sum + (memory.latest(rank)?.[memory.metric] ?? 0), 0);
  return <span className="jpd-NodeRow-memory">{bytes > 0 ? formatBytes(bytes) : ''}</span>;
}

function ranksOf(group: IGroup, node: INode): IRank[] {
  return expandRanks(node.ranks).flatMap(rank => group.ranks[rank] ?? []);
}
