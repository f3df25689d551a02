// `adit tokens-file …`: edits the file by which a self-hosted edge, one without a control plane, knows its keys.
import { randomBytes } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { forbiddenCharacter } from '../contract/text.ts'
import { createSecret, hashSecret } from '../credentials/secret.ts'
import { createIds } from '../domain/ids.ts'
import { readTokensFile, type Token, TokensFileError, validationError } from '../edge-sdk/tokens-file.ts'
import { editFile } from './edit-file.ts'
import { CommandError, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { table } from './table.ts'

export async function add(
  given: { workspace: string; label: string | undefined; file: string },
  io: Io,
): Promise<void> {
  const key = createSecret('key', randomBytes)
  const token: Token = {
    id: createIds(Date.now, randomBytes)('tok'),
    hash: hashSecret(key),
    workspace: given.workspace,
    label: given.label ?? '',
    createdAt: new Date().toISOString(),
  }
  const flaw = validationError(token)
  if (flaw) throw new UsageError(`The ${flaw}.`)
  const forbidden = forbiddenCharacter(token.label)
  if (forbidden) throw new UsageError(`The label ${forbidden}.`)
  await edit(given.file, (tokens) => [...tokens, token])
  io.info(
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

async function edit(file: string, change: (tokens: Token[]) => Token[]): Promise<void> {
  await explained(async () => {
    // Where the path is a link, the file that it leads to is changed.
    const path = existsSync(file) ? realpathSync(file) : file
    await editFile(path, () => {
      const tokens = change(existsSync(path) ? readTokensFile(path) : [])
      return `${JSON.stringify({ tokens }, undefined, 2)}\n`
    })
  })
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
