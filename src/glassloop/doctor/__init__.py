"""What an endpoint can really do: measured by small probes, explained, and written down as a profile.

    patient = Patient(endpoint)
    report = await examine(patient, PROBES)

`probes/` the questions, as a table · `probe.py` what one is · `patient.py` asking them, as an agent would and raw ·
`tape.py` every byte as it went by, and the budget · `reading.py` what went by → findings, by what `wire/` mended and
refused · `shape.py`, `shape_calls.py`, `strict.py` the published shape, read strictly · `words.py` what each kind of
deviation is called · `case.py`, `diagnoses.py` likely causes and their fix · `examination.py` order, dependencies,
verdict · `findings.py` the values · `report.py` table, JSON, Markdown.
"""
