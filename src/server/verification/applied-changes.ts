// The position up to which a node has applied the change log, and the listeners that follow it.
import type { Change, Position } from '../store/change-log/entries.ts'

/** The position before the first entry of every change log. */
const START: Position = { sequence: 0, checksum: '' }

interface ChangeListener {
  onChange: (change: Change) => void
  /** Changes were missed: everything derived from the log is stale. */
  onReset: () => void
}

export interface AppliedChanges {
  /** Position of the last applied change; another object after each change. */
  position(): Position
  /** Applies the next change of the log. */
  apply(change: Change): void
  /** Continues at another position, because the changes before it are unavailable or too many. */
  reset(position: Position): void
  /** Calls the listener for every change after the returned position. */
  subscribe(listener: ChangeListener): { position: Position; unsubscribe: () => void }
}

export function createAppliedChanges(): AppliedChanges {
  const listeners = new Set<ChangeListener>()
  let position = START
  return {
    position: () => position,
    apply(change) {
      for (const { onChange } of listeners) onChange(change)
      position = change
    },
    reset(to) {
      position = to
      for (const { onReset } of listeners) onReset()
    },
    subscribe(listener) {
      listeners.add(listener)
      return { position, unsubscribe: () => listeners.delete(listener) }
    },
  }
}
