// Profiles: the URL of a server and an API key for it, in a file that only its owner can read.
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from '../../edge-sdk/usage/folder.ts'
import { profilesPath } from '../../server/config/environment.ts'
import { CommandError } from '../errors.ts'
import { editFile } from '../tunnels/edit-file.ts'

export interface Profile {
  url: string
  apiKey: string
  /** The id of the key that a sign-in with the browser created for this machine. */
  keyId?: string
  /** Other edges that the user lets have the key. */
  edges?: string[]
}

export interface Profiles {
  /** The profile to use without --profile. */
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
    throw new CommandError('profiles', `Cannot read profiles from ${path}: ${(error as Error).message}.`)
  }
  try {
    const { current, profiles } = JSON.parse(text) as Partial<Profiles>
    for (const { url, apiKey, edges = [] } of Object.values(profiles as Record<string, Profile>))
      if (typeof url !== 'string' || typeof apiKey !== 'string' || !Array.isArray(edges))
        throw new Error('incomplete profile')
    return { current, profiles: { ...profiles } }
  } catch {
    throw new CommandError('profiles', `${path} is corrupt. Remove it and sign in again with \`adit login\`.`)
  }
}

/** Makes the file private to its owner, whatever its mode was. */
export async function editProfiles(change: (now: Profiles) => Profiles): Promise<void> {
  const path = profilesPath()
  try {
    await createFolder(dirname(path))
    if (existsSync(path)) chmodSync(path, 0o600)
    await editFile(path, () => `${JSON.stringify(change(readProfiles()), undefined, 2)}\n`)
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError('profiles', `Cannot write profiles to ${path}: ${(error as Error).message}.`)
  }
}
