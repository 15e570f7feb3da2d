/** The log of a rank, and what travels on the WebSocket. */
import type { IOutput } from '@jupyterlab/nbformat';
import type { IExecution, IViewChange, RankStatus } from './executions';
import type { IDevices, IErrorBody, IGroup, IMemorySample } from './groups';

export interface ILogRecord {
  seq: number;
  at: number;
  rank: number;
  execution_id: string | null;
  execution_count: number | null;
  kind: 'stream' | 'output' | 'begin' | 'end' | 'note';
  /** stream: stdout or stderr. */
  name?: 'stdout' | 'stderr';
  /** stream and note. */
  text?: string;
  /** output. */
  output?: IOutput;
  /** begin. */
  code?: string;
  /** end. */
  status?: RankStatus;
  seconds?: number | null;
}

export interface ILogPage {
  records: ILogRecord[];
  seq: number;
  first: number;
  more: boolean;
}

/** What can be subscribed to; the keys name the subscription. */
export type Topic =
  | { topic: 'execution'; group: string; execution: string }
  | { topic: 'log'; group: string; rank: number }
  | { topic: 'memory'; group: string }
  | { topic: 'devices' };

export interface IViewMessage {
  type: 'view';
  group: string;
  execution_id: string;
  since: number;
  seq: number;
  items: IViewChange[];
  removed?: number[];
  reset?: boolean;
}

export interface IExecutionMessage {
  type: 'execution';
  group: string;
  execution: IExecution;
}

export interface ILogMessage {
  type: 'log';
  group: string;
  rank: number;
  records: ILogRecord[];
  seq: number;
  skipped: number;
}

export interface IMemoryMessage {
  type: 'memory';
  group: string;
  sample: IMemorySample;
}

export interface IDevicesMessage extends IDevices {
  type: 'devices';
}

export interface IErrorMessage {
  type: 'error';
  error: IErrorBody;
  request: Record<string, unknown>;
}

/** What a subscription may receive. */
export type TopicMessage =
  | IExecutionMessage
  | IViewMessage
  | ILogMessage
  | IMemoryMessage
  | IDevicesMessage
  | IErrorMessage;

/** What the server sends on the WebSocket. */
export type ServerMessage =
  | { type: 'hello'; server: string }
  | { type: 'groups'; groups: IGroup[] }
  | TopicMessage;
