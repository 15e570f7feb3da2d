import { nullTranslator } from '@jupyterlab/translation';
import React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { INode } from '../../../services/protocol';
import { NodeList, SpareNodes } from './nodelist';

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

  it('shows the devices and the memory of each, equal devices once', () => {
    const device = (index: number | null, name: string) => ({
      index,
      name,
      uuid: null,
      memory_bytes: index === null ? null : 80 * 2 ** 30
    });
    const devices = [device(0, 'NVIDIA H100'), device(1, 'NVIDIA H100'), device(null, 'MIG-7')];
    const html = shown({ ...node(0, 'joined', 'n0'), devices, memory_bytes: 512 * 2 ** 30 });
    expect(html).toContain('<span>2 × NVIDIA H100 (80.0 GB), MIG-7</span>');
    expect(html).toContain('512 GB</span>');
  });

  it('is open and names what is wrong while one is missing or lost', () => {
    const html = shown(node(0, 'gone', 'n0'), node(1, 'waiting', null));
    expect(html).toContain('<details class="jpd-Nodes" open=""><summary>0 of 2 nodes</summary>');
    expect(html).toContain('title="its node agent ended"');
    expect(html).toContain('<strong>gone</strong>');
    expect(html).toContain('has not joined');
  });
});

describe('SpareNodes', () => {
  const spare = (...nodes: INode[]): string => renderToStaticMarkup(<SpareNodes nodes={nodes} trans={trans} />);

  it('lists the machines without ranks, and what is wrong with one', () => {
    expect(spare()).toBe('');
    const html = spare({ ...node(2, 'joined', 'n2'), memory_bytes: 64 * 2 ** 30 }, node(3, 'gone', 'n3'));
    expect(html).toContain('<summary>2 machines without ranks</summary>');
    expect(html).toMatch(/n2.*64\.0 GB.*n3.*<strong>gone<\/strong>/);
    expect(html.match(/<strong>/g)).toHaveLength(1);
  });
});
