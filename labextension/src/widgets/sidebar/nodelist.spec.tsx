import { nullTranslator } from '@jupyterlab/translation';
import React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { INode } from '../../services/protocol';
import { NodeList } from './nodelist';

const trans = nullTranslator.load('jupyterlab');

function node(number: number, state: INode['state'], host: string | null): INode {
  const message = state === 'gone' ? 'its node agent ended' : null;
  const ranks = `${2 * number}-${2 * number + 1}`;
  return { node: number, host, state, message, ranks, address: null, interface: null };
}

const shown = (...nodes: INode[]): string => renderToStaticMarkup(<NodeList nodes={nodes} trans={trans} />);

describe('NodeList', () => {
  it('shows nothing for a group on one machine', () => {
    expect(shown()).toBe('');
  });

  it('is closed while all nodes have joined', () => {
    const html = shown(node(0, 'joined', 'n0'), node(1, 'joined', 'n1'));
    expect(html).toContain('<details class="jpd-Nodes"><summary>2 nodes</summary>');
    expect(html).toContain('n1');
  });

  it('is open and names what is wrong while one is missing or lost', () => {
    const html = shown(node(0, 'gone', 'n0'), node(1, 'waiting', null));
    expect(html).toContain('<details class="jpd-Nodes" open=""><summary>0 of 2 nodes</summary>');
    expect(html).toContain('title="its node agent ended"');
    expect(html).toContain('<strong>gone</strong>');
    expect(html).toContain('has not joined');
  });
});
