/** The machines of a group over several: how many have joined, and what is wrong with the others. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { formatBytes } from '../../../model/format/quantities';
import type { INode, INodeDevice } from '../../../services/protocol';
import { messageOf } from '../../states/statewords';

export interface INodeListProps {
  readonly nodes: readonly INode[];
  readonly trans: TranslationBundle;
}

/** Open while a machine is missing or lost; nothing for a group on one machine. */
export function NodeList({ nodes, trans }: INodeListProps): React.ReactElement | null {
  if (nodes.length === 0) {
    return null;
  }
  const joined = nodes.filter(node => node.state === 'joined').length;
  const words = stateWords(trans);
  return (
    <details className="jpd-Nodes" open={joined < nodes.length}>
      <summary>
        {joined < nodes.length
          ? trans.__('%1 of %2 nodes', joined, nodes.length)
          : trans._n('%1 node', '%1 nodes', nodes.length)}
      </summary>
      <ul aria-label={trans.__('Nodes')}>
        {nodes.map(node => (
          <li key={node.node} data-state={node.state} title={messageOf(trans, node) || undefined}>
            <span>{trans.__('node:%1', node.node)}</span>
            <span>{node.host ?? words.waiting}</span>
            <span>{trans.__('ranks %1', node.ranks)}</span>
            {(node.devices ?? []).length > 0 && <span>{devicesText(node.devices ?? [], trans)}</span>}
            {node.memory_bytes && (
              <span title={trans.__('Memory of the machine')}>{formatBytes(node.memory_bytes)}</span>
            )}
            {node.host === null && node.message !== null && <em>{messageOf(trans, node)}</em>}
            {node.host !== null && words[node.state] && <strong>{words[node.state]}</strong>}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The machines without ranks, since the group was resized; nothing where there is none. */
export function SpareNodes({ nodes, trans }: INodeListProps): React.ReactElement | null {
  if (nodes.length === 0) {
    return null;
  }
  const label = trans._n('%1 machine without ranks', '%1 machines without ranks', nodes.length);
  return (
    <details className="jpd-Nodes" title={trans.__('The group can grow on machines without ranks: resize it')}>
      <summary>{label}</summary>
      <ul aria-label={label}>
        {nodes.map(node => (
          <li key={node.node} data-state={node.state} title={messageOf(trans, node) || undefined}>
            <span>{node.host ?? trans.__('node:%1', node.node)}</span>
            {(node.devices ?? []).length > 0 && <span>{devicesText(node.devices ?? [], trans)}</span>}
            {node.memory_bytes && (
              <span title={trans.__('Memory of the machine')}>{formatBytes(node.memory_bytes)}</span>
            )}
            {node.state !== 'joined' && <strong>{stateWords(trans)[node.state]}</strong>}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** What is wrong with a machine; nothing if it has joined. */
export function stateWords(trans: TranslationBundle): Record<INode['state'], string> {
  return {
    waiting: trans.__('has not joined'),
    joined: '',
    unreachable: trans.__('link lost'),
    gone: trans.__('gone')
  };
}

/** "4 x NVIDIA A100 (40.0 GB)": equal devices once. */
export function devicesText(devices: readonly INodeDevice[], trans: TranslationBundle): string {
  const counts = new Map<string, number>();
  for (const { name, memory_bytes } of devices) {
    const text = memory_bytes === null ? name : trans.__('%1 (%2)', name, formatBytes(memory_bytes));
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => (count === 1 ? text : `${count} × ${text}`)).join(', ');
}
