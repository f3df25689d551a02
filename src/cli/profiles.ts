// Profiles: where a server is and the key to it, kept for the person who runs the commands and nobody else.
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { profilesPath } from '../config.ts'
import { createFolder } from '../edge-sdk/folder.ts'
import { editFile } from './edit-file.ts'
import { CommandError } from './errors.ts'

export interface Profile {
  url: string
  apiKey: string
}

export interface Profiles {
  /** The one that is used where none is named. */
  current: string | undefined
  profiles: Record<string, Profile>
}

const NONE: Profiles = { current: undefined, profiles: {} }

export function readProfiles(): Profiles {
  const path = profilesPath()
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NONE
    throw new CommandError('profiles', `The profiles in ${path} cannot be read: ${(error as Error).message}.`)
  }
  try {
    const { current, profiles } = JSON.parse(text) as Partial<Profiles>
    for (const { url, apiKey } of Object.values(profiles as Record<string, Profile>))
      if (typeof url !== 'string' || typeof apiKey !== 'string') throw new Error('a profile is not whole')
    return { current, profiles: { ...profiles } }
  } catch {
    throw new CommandError('profiles', `${path} is damaged. Remove it and sign in again with "adit login".`)
  }
}

/** Readable by its owner alone, whatever it was before. */
export async function editProfiles(change: (now: Profiles) => Profiles): Promise<void> {
  const path = profilesPath()
  try {
    await createFolder(dirname(path))
    if (existsSync(path)) chmodSync(path, 0o600)
    await editFile(path, () => `${JSON.stringify(change(readProfiles()), undefined, 2)}\n`)
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError(
      'profiles',
      `The profiles cannot be written to ${path}: ${(error as Error).message}.`,
    )
  }
}
