/** The topics that a page follows, and their followers; a subscription that failed for now is renewed. */
import type { IDisposable } from '@lumino/disposable';
import { isLasting, localized } from '../errors';
import type { Topic, TopicMessage } from '../protocol';

/** A follower of a topic. */
export interface ITopicHandler {
  /**
   * The highest known `seq`, from which to continue after a reconnection.
   * Omitted for topics without a cursor.
   */
  since?(): number;
  /**
   * Handle a message. It may repeat known data, because two followers of a
   * topic can have different cursors: ignore that by its `seq`.
   */
  receive(message: TopicMessage): void;
  /** Called when the server is asked again after an error, which may be over. */
  asked?(): void;
}

export interface ITopicSubscription extends IDisposable {
  /** Subscribe again from `since()`, after an unexpected gap. */
  resubscribe(): void;
}

/** A topic with its followers. */
export interface ITopicEntry {
  readonly topic: Topic;
  readonly handlers: Set<ITopicHandler>;
}

/** After an error, the server sends no more of a topic; it is asked again after this time. */
export const RENEW_MS = 10000;

export class Topics {
  constructor(
    /** Ask the server for a topic again. */
    private readonly _renew: (entry: ITopicEntry) => void
  ) {}

  /** All that are followed. */
  get entries(): ITopicEntry[] {
    return [...this._entries.values()];
  }

  find(key: string): ITopicEntry | undefined {
    return this._entries.get(key);
  }

  /** Add a follower. */
  add(topic: Topic, handler: ITopicHandler): ITopicEntry {
    const key = topicKey(topic);
    const entry = this._entries.get(key) ?? { topic, handlers: new Set() };
    this._entries.set(key, entry);
    entry.handlers.add(handler);
    return entry;
  }

  /** Remove a follower; whether it was the last of its topic. */
  remove(entry: ITopicEntry, handler: ITopicHandler): boolean {
    const key = topicKey(entry.topic);
    entry.handlers.delete(handler);
    if (entry.handlers.size > 0 || this._entries.get(key) !== entry) {
      return false;
    }
    this._entries.delete(key);
    this._stopRenewing(entry);
    return true;
  }

  /** Note that the server is asked for a topic. */
  asked(entry: ITopicEntry): void {
    this._stopRenewing(entry);
    if (this._failed.delete(entry)) {
      entry.handlers.forEach(handler => handler.asked?.());
    }
  }

  /** Give a message to the followers of its topic. */
  dispatch(entry: ITopicEntry, sent: TopicMessage): void {
    const message = sent.type === 'error' ? { ...sent, error: localized(sent.error) } : sent;
    this._stopRenewing(entry);
    this._failed.delete(entry);
    if (message.type === 'error') {
      this._failed.add(entry);
      if (!isLasting(message.error)) {
        this._renewing.set(
          entry,
          setTimeout(() => this._renew(entry), RENEW_MS)
        );
      }
    }
    for (const handler of [...entry.handlers]) {
      try {
        handler.receive(message);
      } catch (reason) {
        // An error in one follower must not affect the others.
        console.error('Could not handle a jupyter_dist message', reason);
      }
    }
  }

  clear(): void {
    this._renewing.forEach(timer => clearTimeout(timer));
    this._renewing.clear();
    this._entries.clear();
  }

  private _stopRenewing(entry: ITopicEntry): void {
    clearTimeout(this._renewing.get(entry));
    this._renewing.delete(entry);
  }

  private _entries = new Map<string, ITopicEntry>();
  /** The last message was an error. */
  private _failed = new WeakSet<ITopicEntry>();
  private _renewing = new Map<ITopicEntry, ReturnType<typeof setTimeout>>();
}

export function topicKey(topic: Topic): string {
  switch (topic.topic) {
    case 'execution':
      return JSON.stringify(['execution', topic.group, topic.execution]);
    case 'log':
      return JSON.stringify(['log', topic.group, topic.rank]);
    case 'comms':
    case 'memory':
      return JSON.stringify([topic.topic, topic.group]);
    case 'groups':
    case 'devices':
      return JSON.stringify([topic.topic]);
  }
}

/** The key of a message's topic; null if it has none. */
export function messageKey(message: TopicMessage): string | null {
  switch (message.type) {
    case 'execution':
      return topicKey({ topic: 'execution', group: message.group, execution: message.execution.id });
    case 'view':
      return topicKey({ topic: 'execution', group: message.group, execution: message.execution_id });
    case 'log':
      return topicKey({ topic: 'log', group: message.group, rank: message.rank });
    case 'comms':
    case 'memory':
      return topicKey({ topic: message.type, group: message.group });
    case 'devices':
      return topicKey({ topic: 'devices' });
    case 'error':
      return message.request?.topic ? topicKey(message.request as unknown as Topic) : null;
    default:
      // A message of a newer server.
      return null;
  }
}
