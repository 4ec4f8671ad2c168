"""Renders and checks what is in deploy/, for tests/deploy. Objects travel as JSON lists on standard output and input.

    tool.py kustomize DIR            the objects of a kustomization
    tool.py helm CHART [VALUES]      the objects of the chart, as the release `thinwire`
    tool.py lint CHART [VALUES]      faults that helm lint finds
    tool.py values CHART JSON        faults of these values by the chart's schema
    tool.py validate                 faults of objects by the Kubernetes schemas, strictly; custom resources are passed over
    tool.py yaml FILE                a YAML file as JSON
"""

import json
import os
import subprocess
import sys

import yaml

# The newest that kubernetes-validate has, and the oldest that the manifests are for.
KUBERNETES = ["1.37", "1.30"]

# Their schemas are checked by crds.mjs.
CUSTOM = {"cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com"}


def kustomize(folder):
    kubectl = os.path.join(os.path.dirname(sys.executable), "kubectl")
    run = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True)
    if run.returncode or run.stderr:
        sys.exit(f"kubectl kustomize {folder}: {run.stderr}")
    return objects(run.stdout)


def helm(chart, values=None):
    from helm_python.chart import Chart

    with Chart.load(chart) as loaded:
        loaded.validate_schema(read(values))
        rendered = loaded.render(values=read(values), name="thinwire", namespace="thinwire")
    return [each for text in rendered.values() for each in objects(text)]


def lint(chart, values=None):
    from helm_python.chart import lint as helm_lint

    messages = helm_lint(chart, read(values), strict=True)["messages"]
    # An icon is for catalogues.
    return [each for each in messages if "icon is recommended" not in json.dumps(each)]


def values(chart, text):
    from helm_python.chart import Chart

    with Chart.load(chart) as loaded:
        try:
            loaded.validate_schema(json.loads(text))
        except Exception as fault:
            return [str(fault)]
    return []


def validate():
    import kubernetes_validate

    faults = []
    for each in json.load(sys.stdin):
        if each["apiVersion"].split("/")[0] in CUSTOM:
            continue
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except Exception as fault:
                faults.append(f"{each['kind']}/{each['metadata']['name']} in {version}: {fault}")
    return faults


def objects(text):
    return [each for each in yaml.safe_load_all(text) if each]


def read(path):
    if path is None:
        return {}
    with open(path) as file:
        return yaml.safe_load(file)


VERBS = {"kustomize": kustomize, "helm": helm, "lint": lint, "values": values, "validate": validate, "yaml": read}

if __name__ == "__main__":
    print(json.dumps(VERBS[sys.argv[1]](*sys.argv[2:])))
