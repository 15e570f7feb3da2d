/** A toggle per node, in place of a toggle per rank where those would be too many. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useMemo, useState } from 'react';
import { expandRanks } from '../../../model/format/ranks';
import { findNodes } from '../../../model/groups/nodes';
import type { IGroup, INode } from '../../../services/protocol';
import { moveFocus } from '../layout/roving';
import { countStates, StateBar } from '../../states/statebar';

/** At most this many nodes are listed; others are found by their name. */
const MAX_LISTED = 128;

interface INodeTogglesProps {
  group: IGroup;
  chosen: readonly number[];
  trans: TranslationBundle;
  onToggle(ranks: readonly number[]): void;
}

export function NodeToggles({ group, chosen, trans, onToggle }: INodeTogglesProps): React.ReactElement {
  const [query, setQuery] = useState('');
  const found = findNodes(group.nodes ?? [], query);
  const isChosen = useMemo(() => new Set(chosen), [chosen]);
  return (
    <div className="jpd-NodeToggles">
      <input
        type="search"
        className="jpd-NodeToggles-search"
        placeholder={trans.__('Find a node or rank')}
        aria-label={trans.__('Find a node or rank')}
        value={query}
        onChange={event => setQuery(event.target.value)}
        onKeyDown={event => event.key !== 'Escape' && event.stopPropagation()}
      />
      <div className="jpd-NodeToggles-list" role="group" aria-label={trans.__('Nodes')} onKeyDown={moveFocus}>
        {found.slice(0, MAX_LISTED).map((node, i) => (
          <NodeToggle key={node.node} {...{ group, node, isChosen, trans, onToggle }} tabIndex={i === 0 ? 0 : -1} />
        ))}
      </div>
      <p className="jpd-Hint" role="status">
        {found.length > MAX_LISTED
          ? trans.__('%1 of %2 nodes are listed', MAX_LISTED, found.length)
          : trans._n('%1 node', '%1 nodes', found.length)}
      </p>
    </div>
  );
}

interface INodeToggleProps extends Omit<INodeTogglesProps, 'chosen'> {
  node: INode;
  isChosen: ReadonlySet<number>;
  tabIndex: number;
}

function NodeToggle(props: INodeToggleProps): React.ReactElement {
  const { group, node, isChosen, trans, tabIndex, onToggle } = props;
  const ranks = expandRanks(node.ranks);
  const number = ranks.filter(rank => isChosen.has(rank)).length;
  const pressed = number === 0 ? 'false' : number === ranks.length ? 'true' : 'mixed';
  const label = trans.__('node:%1 %2, ranks %3', node.node, node.host ?? '', node.ranks);
  return (
    <button
      type="button"
      className="jpd-NodeToggle"
      aria-pressed={pressed}
      aria-label={label}
      title={label}
      tabIndex={tabIndex}
      onClick={() => onToggle(ranks)}
    >
      <span>{node.node}</span>
      <span className="jpd-NodeToggle-host">{node.host}</span>
      <StateBar counts={countStates(ranks.map(rank => group.ranks[rank]).filter(Boolean))} trans={trans} />
    </button>
  );
}
