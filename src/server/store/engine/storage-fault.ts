// Storage faults of the database: disk full, read-only, I/O errors, corruption.
import { isWorkerError } from './postgres/citus-errors.ts'

type StorageFaultKind = 'full' | 'read_only' | 'io' | 'corrupt' | 'not_a_database'

/** The summary is public; the remedy is for the operator. */
const texts: Record<StorageFaultKind, readonly [summary: string, remedy: string]> = {
  full: ['The database disk is full.', 'Free up or add disk space; writes resume without a restart.'],
  read_only: [
    'The database is read-only.',
    'Check the permissions of its file and directory, and the mount options of the disk.',
  ],
  io: ['The database disk cannot be read or written.', 'Check the disk and the system log.'],
  corrupt: [
    'The database is damaged.',
    'Stop every adit process that uses it and restore a backup (docs/operations/backup.md), or recover ' +
      'the remaining rows with the ".recover" command of sqlite3.',
  ],
  not_a_database: [
    'The file is not a SQLite database, or its header is damaged.',
    'Check ADIT_DATABASE_URL, or restore a backup (docs/operations/backup.md).',
  ],
}

/** Primary result codes of SQLite: READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB. */
const SQLITE_KINDS: Readonly<Record<number, StorageFaultKind>> = {
  8: 'read_only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'io',
  26: 'not_a_database',
}
const POSTGRES_KINDS: Readonly<Record<string, StorageFaultKind>> = { '53100': 'full', '58030': 'io' }

export class StorageFault extends Error {
  override name = 'StorageFault'
  readonly kind: StorageFaultKind
  /** Public part of the message. */
  readonly summary: string

  constructor(kind: StorageFaultKind, cause: Error) {
    const [summary, remedy] = texts[kind]
    super(`${summary} ${remedy} (${cause.message})`, { cause })
    this.kind = kind
    this.summary = summary
  }

  /** Corruption persists until the database is restored and the process restarted. */
  get isDamage(): boolean {
    return this.kind === 'corrupt' || this.kind === 'not_a_database'
  }
}

/**
 * The storage fault behind a driver's error; undefined for any other error, and for the disk of a Citus
 * worker, which affects only the usage stored there.
 */
export function toStorageFault(error: unknown): StorageFault | undefined {
  if (error instanceof StorageFault) return error
  if (!(error instanceof Error) || isWorkerError(error)) return undefined
  const { errcode, code = '' } = error as { errcode?: number; code?: string }
  const kind = errcode === undefined ? POSTGRES_KINDS[code] : SQLITE_KINDS[errcode & 0xff]
  return kind && new StorageFault(kind, error)
}

export interface StorageEvents {
  /** Called once per fault, not for each failed query. */
  onStorageFault: (fault: StorageFault) => void
  onStorageRecovered: () => void
}

const PROBE_INTERVAL_MS = 1_000

/** Tracks whether the database can be written, from the errors of queries and a probe. */
export class StorageHealth {
  readonly #events: StorageEvents
  #fault: StorageFault | undefined
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(events: StorageEvents) {
    this.#events = events
  }

  /** Called with every query error; returns the error to throw. */
  record(error: unknown): unknown {
    const fault = toStorageFault(error)
    if (!fault) return error
    if (this.#fault?.kind !== fault.kind && !this.#fault?.isDamage) {
      this.#fault = fault
      this.#events.onStorageFault(fault)
    }
    return fault
  }

  /**
   * Rejects while there is a fault. Only a successful write probe clears it, because heartbeats overwrite a
   * row and succeed even on a full disk.
   */
  async requireHealthy(probe: () => Promise<void>): Promise<void> {
    if (!this.#fault) return
    const now = performance.now()
    if (this.#fault.isDamage || now - this.#probedAt < PROBE_INTERVAL_MS) throw this.#fault
    this.#probedAt = now
    const fault = this.#fault
    await probe()
    // Meanwhile another query may have failed differently, or another probe succeeded.
    if (this.#fault !== fault) return this.requireHealthy(probe)
    this.#fault = undefined
    this.#events.onStorageRecovered()
  }
}
