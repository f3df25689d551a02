// Profiles: where a server is and the key to it, kept for the person who runs the commands and nobody else.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { profilesPath } from '../config.ts'
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

/** Replaced as a whole, and readable by its owner alone. */
export function writeProfiles(profiles: Profiles): void {
  const path = profilesPath()
  const draft = `${path}.new`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    rmSync(draft, { force: true })
    writeFileSync(draft, `${JSON.stringify(profiles, undefined, 2)}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    })
    chmodSync(draft, 0o600)
    renameSync(draft, path)
  } catch (error) {
    throw new CommandError(
      'profiles',
      `The profiles cannot be written to ${path}: ${(error as Error).message}.`,
    )
  }
}
