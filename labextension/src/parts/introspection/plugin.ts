/** What ranks know of the names in a cell that is being typed: completions, Shift+Tab, Contextual Help. */
import { completerPlugin } from './completer';
import { contextualHelpPlugin } from './contextualhelp';
import { inspectionPlugin } from './inspection';

export default [completerPlugin, inspectionPlugin, contextualHelpPlugin];
