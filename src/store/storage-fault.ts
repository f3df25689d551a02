// Faults of the storage under the database: no space, no permission, a failing disk, damaged pages.

export type StorageFaultKind = 'full' | 'read_only' | 'io' | 'corrupt' | 'not_a_database'

/** What is wrong, fit for anybody, and what the operator can do. */
const texts: Record<StorageFaultKind, readonly [summary: string, remedy: string]> = {
  full: ['The database disk is full.', 'Free space or enlarge it; writes resume without a restart.'],
  read_only: [
    'The database is read-only.',
    'Check the permissions of its file and folder, and how the disk is mounted.',
  ],
  io: ['The database disk cannot be read or written.', 'Check the disk and the system log.'],
  corrupt: [
    'The database is damaged.',
    'Stop every adit that uses it and restore a backup (docs/operations/backup.md), or salvage what is left ' +
      'with ".recover" of the sqlite3 command.',
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
  /** Without what only the operator should see. */
  readonly summary: string

  constructor(kind: StorageFaultKind, cause: Error) {
    const [summary, remedy] = texts[kind]
    super(`${summary} ${remedy} (${cause.message})`, { cause })
    this.kind = kind
    this.summary = summary
  }

  /** Damage does not mend without a restart. */
  get isDamage(): boolean {
    return this.kind === 'corrupt' || this.kind === 'not_a_database'
  }
}

/** The fault that a driver's error stands for; undefined where it is another kind of error. */
export function storageFaultOf(error: unknown): StorageFault | undefined {
  if (error instanceof StorageFault) return error
  if (!(error instanceof Error)) return undefined
  const { errcode, code = '' } = error as { errcode?: number; code?: string }
  const kind = errcode === undefined ? POSTGRES_KINDS[code] : SQLITE_KINDS[errcode & 0xff]
  return kind && new StorageFault(kind, error)
}

export interface StorageEvents {
  /** Once when it begins, not for each query that fails. */
  onStorageFault: (fault: StorageFault) => void
  onStorageRecovered: () => void
}

const PROBE_EVERY_MS = 1_000

/** Whether the database can be written, as far as the last queries tell. */
export class StorageHealth {
  readonly #events: StorageEvents
  #fault: StorageFault | undefined
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(events: StorageEvents) {
    this.#events = events
  }

  /** To be called with every error of a query; returns the error to throw. */
  record(error: unknown): unknown {
    const fault = storageFaultOf(error)
    if (!fault) return error
    if (this.#fault?.kind !== fault.kind && !this.#fault?.isDamage) {
      this.#fault = fault
      this.#events.onStorageFault(fault)
    }
    return fault
  }

  /**
   * Rejects while there is a fault. It is over when a probe succeeds that writes as much as requests do: heartbeats, which
   * overwrite a row, still succeed where there is no room for anything new.
   */
  async requireHealthy(probe: () => Promise<void>): Promise<void> {
    if (!this.#fault) return
    const now = performance.now()
    if (this.#fault.isDamage || now - this.#probedAt < PROBE_EVERY_MS) throw this.#fault
    this.#probedAt = now
    const fault = this.#fault
    await probe()
    // Another query may have failed in another way, or another probe succeeded, in the meantime.
    if (this.#fault !== fault) return this.requireHealthy(probe)
    this.#fault = undefined
    this.#events.onStorageRecovered()
  }
}
