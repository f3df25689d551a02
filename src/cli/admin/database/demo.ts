import { fillWithUsage, recordDemo } from '../../../server/domain/setup/demo.ts'
import { getBySlug } from '../../../server/domain/workspaces/manage.ts'
import type { Io } from '../../io.ts'
import { withServices } from '../with-services.ts'

const DAYS = 365

export async function demo(slug: string, io: Io): Promise<void> {
  await withServices(async (services, actor) => {
    const { id } = await getBySlug(services, slug)
    await recordDemo(services, actor, id, DAYS)
    await fillWithUsage(services, id, DAYS, (done) => io.progress(`${done} of ${DAYS} days`))
  })
  io.progress('')
  io.data({ workspace: slug, days: DAYS }, `Filled workspace "${slug}" with ${DAYS} days of sample usage.`)
}
