import { SessionIds, sessionOf } from './sessionids';

/**
 * Which executions were submitted from this tab of the browser, so that their
 * output is trusted. Kept in the tab's session storage, which survives a
 * reload and which no other user of the server can write.
 */
const KEY = 'jupyter-dist:executions';
/** Older ones are forgotten: their output is sanitized then. */
const MAX_KEPT = 500;

export class OwnExecutions extends SessionIds {
  constructor(storage = sessionOf(window)) {
    super(KEY, MAX_KEPT, storage);
  }
}
