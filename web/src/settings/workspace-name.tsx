import { call } from '../api.ts'
import { NameForm } from '../components/forms/name-form.tsx'
import { Section } from '../components/section.tsx'
import { useWorkspace } from '../session.tsx'

export function WorkspaceName() {
  const { slug, name: saved, role } = useWorkspace()
  return (
    <Section
      title="Name"
      description={`Members and API clients see this name. The slug ${slug} and tunnel URLs stay the same.`}
    >
      <NameForm
        label="Workspace name"
        autoComplete="off"
        disabled={role !== 'owner'}
        saved={saved}
        onSave={(name) => call('settings.rename', { workspace: slug, name })}
        actionLabel="Save name"
      />
    </Section>
  )
}
