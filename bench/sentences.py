"""Made-up memories and questions, ours alone: the same ones for the same seed."""

# ruff: noqa: SIM905 -- lists of words read better as words

from __future__ import annotations

import random

PEOPLE = (
    "Amara Bram Chiara Dmitri Elif Farid Greta Hiro Ines Jonas Kalinda Luca Mei Nadia Oskar Priya Quentin Rosa Sven "
    "Tariq Uma Viktor Wanda Ximena Yusuf Zofia Anselm Beatriz Cillian Dalia Emeka Fenna Goran Hanneke Idris Jolanda"
).split()
KIN = ("sister", "brother", "neighbour", "manager", "cousin", "flatmate", "dentist", "tutor", "colleague", "aunt")
PLACES = (
    "Lisbon Tampere Graz Bergen Porto Leipzig Ghent Cork Malmö Turin Zadar Utrecht Basel Krakow Aarhus Nantes Bilbao "
    "Tallinn Ostrava Bristol Valletta Salamanca Trondheim Innsbruck Split Bologna Gdansk Lyon Maribor Tromsø"
).split()
TOOLS = (
    "Postgres Redis Terraform Grafana Kafka Nginx Ansible Webpack Django Flask Rails Gradle Bazel Jenkins Vault Consul "
    "RabbitMQ Celery Airflow Spark Prometheus Sentry Figma Blender Ableton Lightroom Notion Obsidian Docker Podman"
).split()
THINGS = (
    "bicycle,kayak,telescope,cello,sourdough starter,espresso machine,sewing machine,drone,greenhouse,record player,"
    "3D printer,camper van,wood stove,loom,chess clock,microscope,accordion,beehive,paddle board,vintage camera"
).split(",")
FOODS = (
    "lentil soup,mushroom risotto,oat porridge,grilled aubergine,rye bread,kimchi,pear tart,chickpea curry,"
    "pumpkin ravioli,beetroot salad,miso noodles,plum dumplings,potato pancakes,black bean chili,almond cake"
).split(",")
PASTIMES = (
    "bouldering,birdwatching,calligraphy,open-water swimming,board games,pottery,orienteering,jazz piano,archery,"
    "mushroom picking,crosswords,beekeeping,salsa dancing,astronomy,long-distance cycling,woodcarving"
).split(",")
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
PROJECTS = (
    "Heron Lantern Basalt Meadow Compass Juniper Orchard Tundra Harbor Saffron Falcon Marble Willow Ember Cobalt"
).split()
COLOURS = ("green", "navy", "ochre", "grey", "turquoise", "crimson", "ivory", "violet")

MEMORIES = (
    "{person} moved from {place} to {place2} in {month} {year} and rents a flat with {number} rooms.",
    "User's {kin} {person} works as a surveyor in {place} and visits every {day}.",
    "The {project} service runs on {tool} {version} and listens on port {port}.",
    "User prefers {food} over {food2}, but never after {hour} in the evening.",
    "{person} plays in a band with {person2}; they rehearse on {day} evenings near {place}.",
    "The deadline of project {project} is {month} {number}, and {person} signs it off.",
    "User bought a {colour} {thing} in {place} for {price} euros and keeps it in the cellar.",
    "In the {project} repository, migrations are written with {tool} and reviewed by {person}.",
    "{person} is learning {pastime} and has a lesson each {day} at {hour}.",
    "User's {kin} is allergic to walnuts and always orders {food} when the family meets in {place}.",
    "The backup of {tool} starts at {hour} and takes about {number} minutes on the {colour} server.",
    "{person} and {person2} are planning a trip to {place} in {month}, travelling by night train.",
    "User wants meeting notes of {project} in {tool}, with decisions first and at most {number} lines.",
    "{person} sold the {thing} and now spends the weekends {pastime} around {place}.",
    "The flat in {place} costs {price} euros a month, and the contract ends in {month} {year}.",
    "Builds of {project} fail when {tool} is older than version {version}; pin it in the lock file.",
    "User ran {number} kilometres with {person} on {day} and was faster than in {month}.",
    "{person} recommended {food} at the small restaurant behind the station in {place}.",
    "For {project} the team switched from {tool} to {tool2} after the outage in {month} {year}.",
    "User's doctor in {place} moved the appointment to {day}, {month} {number} at {hour}.",
)
QUESTIONS = (
    "Where did {person} move from {place}?",
    "Which port does the {project} service listen on?",
    "What does the user's {kin} do in {place}?",
    "When is the deadline of project {project}?",
    "What did the user buy in {place}?",
    "Who reviews {tool} migrations in the {project} repository?",
    "On which day does {person} have a {pastime} lesson?",
    "How long does the {tool} backup take?",
    "Where are {person} and {person2} travelling in {month}?",
    "Which version of {tool} does {project} need?",
    "What should one order in {place}, {food} or something else?",
    "Why did the team replace {tool} in {project}?",
    "How much is the rent of the flat in {place}?",
    "What kind of {thing} does the user own?",
    "When is the doctor's appointment in {place}?",
)


def memories(count: int, *, seed: int = 1) -> list[str]:
    """Different sentences, in an order that mixes the subjects."""
    draw = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        made[filled(draw.choice(MEMORIES), draw)] = None
    return list(made)


def questions(count: int, *, seed: int = 2) -> list[str]:
    draw = random.Random(seed)
    return [filled(QUESTIONS[number % len(QUESTIONS)], draw) for number in range(count)]


def filled(template: str, draw: random.Random) -> str:
    person, person2 = draw.sample(PEOPLE, 2)
    place, place2 = draw.sample(PLACES, 2)
    tool, tool2 = draw.sample(TOOLS, 2)
    food, food2 = draw.sample(FOODS, 2)
    return template.format(
        person=person, person2=person2, place=place, place2=place2, tool=tool, tool2=tool2, food=food, food2=food2,
        kin=draw.choice(KIN), thing=draw.choice(THINGS), pastime=draw.choice(PASTIMES), project=draw.choice(PROJECTS),
        colour=draw.choice(COLOURS), month=draw.choice(MONTHS), day=draw.choice(DAYS), year=draw.randint(2015, 2026),
        number=draw.randint(2, 28), price=draw.randint(20, 1900), port=draw.randint(3000, 9900),
        hour=f"{draw.randint(6, 22)}:{draw.choice(('00', '15', '30', '45'))}",
        version=f"{draw.randint(1, 19)}.{draw.randint(0, 12)}",
    )  # fmt: skip
