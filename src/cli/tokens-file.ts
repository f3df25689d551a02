// `adit tokens-file …`: edits the file by which a self-hosted edge, one without a control plane, knows its keys.
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createIds } from '../domain/ids.ts'
import { hashSecret, mintSecret } from '../domain/secret.ts'
import { flawOf, readTokensFile, type Token, TokensFileError } from '../edge/tokens-file.ts'
import { CommandError, UsageError } from './errors.ts'
import { type Io, table } from './io.ts'

const LOCK_PATIENCE_MS = 3_000
const LOCK_RETRY_MS = 50

export async function add(
  given: { workspace: string; label: string | undefined; file: string },
  io: Io,
): Promise<void> {
  const key = mintSecret('key', randomBytes)
  const token: Token = {
    id: createIds(Date.now, randomBytes)('tok'),
    hash: hashSecret(key),
    workspace: given.workspace,
    label: given.label ?? '',
    createdAt: new Date().toISOString(),
  }
  const flaw = flawOf(token)
  if (flaw) throw new UsageError(`The ${flaw}.`)
  await edit(given.file, (tokens) => [...tokens, token])
  io.say(
    `Added ${token.id} for the workspace "${token.workspace}" to ${given.file}. Save the key: it is not shown again.`,
  )
  const { hash: _hash, ...shown } = token
  io.data({ ...shown, token: key }, key)
}

export async function list(file: string, io: Io): Promise<void> {
  const tokens = await explained(() => readTokensFile(file))
  const rows = tokens.map(({ id, workspace, label, createdAt }) => [id, workspace, label, createdAt ?? ''])
  io.data(
    tokens.map(({ hash: _hash, ...shown }) => shown),
    table(['ID', 'WORKSPACE', 'LABEL', 'CREATED'], rows),
  )
}

export async function remove(id: string, file: string, io: Io): Promise<void> {
  await edit(file, (tokens) => {
    const left = tokens.filter((token) => token.id !== id)
    if (left.length === tokens.length)
      throw new CommandError('not_found', `There is no token ${id} in ${file}.`)
    return left
  })
  io.data({ id, removed: true }, `Removed ${id}. An edge that uses ${file} refuses its key within a second.`)
}

/** Changes the file as a whole, one editor at a time: whoever reads it sees the old list or the new one. */
async function edit(file: string, change: (tokens: Token[]) => Token[]): Promise<void> {
  await explained(async () => {
    // Where the path is a link, the file that it leads to is changed, and keeps who may read it.
    const path = existsSync(file) ? realpathSync(file) : file
    const lock = `${path}.lock`
    await take(lock)
    try {
      const found = statSync(path, { throwIfNoEntry: false })
      const tokens = change(found ? readTokensFile(path) : [])
      const text = `${JSON.stringify({ tokens }, undefined, 2)}\n`
      replaceFile(path, text, found)
    } finally {
      rmSync(lock, { force: true })
    }
  })
}

/** Whoever could read the file before can read the new one, and nobody else. */
function replaceFile(path: string, text: string, before: Stats | undefined): void {
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  const file = openSync(draft, 'wx', 0o600)
  try {
    if (before) {
      if (before.uid !== fstatSync(file).uid || before.gid !== fstatSync(file).gid)
        fchownSync(file, before.uid, before.gid)
      fchmodSync(file, before.mode & 0o777)
    }
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}

async function take(lock: string): Promise<void> {
  const began = performance.now()
  while (true) {
    try {
      writeFileSync(lock, '', { flag: 'wx', mode: 0o600 })
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (performance.now() - began > LOCK_PATIENCE_MS)
        throw new CommandError(
          'tokens_file',
          `Somebody else is editing the file. If nobody is, remove ${lock} and try again.`,
        )
      await sleep(LOCK_RETRY_MS)
    }
  }
}

async function explained<T>(act: () => T | Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException
    if (error instanceof TokensFileError) throw new CommandError('tokens_file', message)
    if (syscall) throw new CommandError('tokens_file', `The tokens file cannot be written: ${message}.`)
    throw error
  }
}
