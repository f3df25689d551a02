// `adit tokens-file …`: edits the file against which an edge without a control plane verifies keys.
import { randomBytes } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { forbiddenCharacter } from '../../contract/text.ts'
import {
  readTokensFile,
  type Token,
  TokensFileError,
  validationError,
} from '../../edge-sdk/keys/tokens-file.ts'
import { createSecret, hashSecret } from '../../lib/credentials/secret.ts'
import { createIds } from '../../server/domain/ids.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { editFile } from './edit-file.ts'

export async function add(
  input: { workspace: string; label: string | undefined; file: string },
  io: Io,
): Promise<void> {
  const key = createSecret('key', randomBytes)
  const token: Token = {
    id: createIds(Date.now, randomBytes)('tok'),
    hash: hashSecret(key),
    workspace: input.workspace,
    label: input.label ?? '',
    createdAt: new Date().toISOString(),
  }
  const mistake = validationError(token)
  if (mistake) throw new UsageError(`The ${mistake}.`)
  const forbidden = forbiddenCharacter(token.label)
  if (forbidden) throw new UsageError(`The label ${forbidden}.`)
  await edit(input.file, (tokens) => [...tokens, token])
  io.info(
    `Added ${token.id} for workspace "${token.workspace}" to ${input.file}. ` +
      'Store the key in your secret manager; it is not shown again.',
  )
  const { hash: _hash, ...shown } = token
  io.data({ ...shown, token: key }, key)
}

export async function list(file: string, io: Io): Promise<void> {
  const tokens = await withFileErrors(() => readTokensFile(file))
  await io.list([tokens.map(({ hash: _hash, ...shown }) => shown)], {
    columns: {
      ID: (token) => token.id,
      WORKSPACE: (token) => token.workspace,
      LABEL: (token) => token.label,
      CREATED: (token) => (token.createdAt ? io.time(token.createdAt) : ''),
    },
    empty: 'No keys.',
    shrink: ['LABEL', 'WORKSPACE'],
  })
}

export async function remove(id: string, file: string, io: Io): Promise<void> {
  await edit(file, (tokens) => {
    const remaining = tokens.filter((token) => token.id !== id)
    if (remaining.length === tokens.length)
      throw new CommandError(
        'not_found',
        `No key ${id} in ${file}. Run \`adit tokens-file list\` to list keys.`,
      )
    return remaining
  })
  io.data({ id, removed: true }, `Removed ${id}. Edges that use ${file} reject the key within a second.`)
}

async function edit(file: string, change: (tokens: Token[]) => Token[]): Promise<void> {
  await withFileErrors(async () => {
    // Edit the target of a symbolic link, not the link.
    const path = existsSync(file) ? realpathSync(file) : file
    await editFile(path, () => {
      const tokens = change(existsSync(path) ? readTokensFile(path) : [])
      return `${JSON.stringify({ tokens }, undefined, 2)}\n`
    })
  })
}

async function withFileErrors<T>(act: () => T | Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException
    if (error instanceof TokensFileError) throw new CommandError('tokens_file', message)
    if (syscall) throw new CommandError('tokens_file', `Cannot write the tokens file: ${message}.`)
    throw error
  }
}
