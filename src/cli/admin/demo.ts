import { fillWithUsage } from '../../domain/demo.ts'
import { getBySlug } from '../../domain/workspaces.ts'
import type { Io } from '../io.ts'
import { withWorld } from './with-world.ts'

const DAYS = 365

export async function demo(slug: string, io: Io): Promise<void> {
  await withWorld(io, async (world) => {
    const { id } = await getBySlug(world, slug)
    await fillWithUsage(world, id, DAYS, (done) => io.progress(`${done} of ${DAYS} days`))
  })
  io.progress('')
  io.data({ workspace: slug, days: DAYS }, `The workspace "${slug}" has ${DAYS} days of invented usage.`)
}
